"""Requests that share nothing: no prefix is ever hit."""

from __future__ import annotations

from collections.abc import Iterator

from ..schema_generators import IndependentSettings
from .draft import Draft
from .lengths import lengths


def independent_drafts(asked: IndependentSettings, seed: int) -> Iterator[Draft]:
    """Prompts of their own content, without end."""
    prompts = lengths(asked.prompt_tokens, seed, "prompt_tokens")
    outputs = lengths(asked.output_tokens, seed, "output_tokens")
    return (Draft((), prompt, output) for prompt, output in zip(prompts, outputs, strict=False))
