"""Reads vLLM's `custom` benchmark data: jsonl with a `prompt` as text and the `output_tokens` to generate.

There are no times: the scenario's `rate` says when requests come. Lengths are estimates (`text.py`). Other fields are
left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...policies.core.request import Prompt
from .objects import json_object, text_of
from .reading import read_lines
from .rows import TraceRow, num_tokens
from .text import TextPrompt

_FIELDS = ("prompt", "output_tokens")


def read_custom(path: Path, chars_per_token: float) -> Iterator[TraceRow]:
    """The rows in the file's order, all at time 0; ScenarioError names file, line and field."""
    for line, text in read_lines(path):
        fields = json_object(text, path, line, _FIELDS)
        prompt = TextPrompt(chars_per_token)
        prompt.add_text(text_of(fields["prompt"], path, line, "prompt"))
        yield TraceRow(0, Prompt(prompt.spans), num_tokens(fields["output_tokens"], path, line, "output_tokens"))
