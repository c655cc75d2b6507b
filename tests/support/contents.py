"""Random prompts and outputs that repeat, extend and continue one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Text:
    """A request's tokens: the prompt, and the outputs that will be sampled."""

    prompt: list[int]
    outputs: list[int]
    are_outputs_unique: bool

    def as_request(self) -> dict[str, Any]:
        """The content keys of a case's request; unique outputs are told by leaving their tokens out."""
        request: dict[str, Any] = {"prompt_token_ids": self.prompt, "output_len": len(self.outputs)}
        return request if self.are_outputs_unique else request | {"output_token_ids": self.outputs}


def random_text(rng: Random, earlier: Sequence[Text], index: int, lengths: tuple[int, int], alphabet: int) -> Text:
    """The content of the request at `index`; `lengths` are the most prompt and the exact output tokens."""
    num_prompt, num_output = lengths
    source = rng.choice(earlier) if earlier else Text(_fresh(rng, num_prompt, alphabet), [], False)
    prompt = _prompt(rng, source, num_prompt, alphabet)
    if rng.random() < 0.35:
        unique = list(range(1_000_000 + 100_000 * index, 1_000_000 + 100_000 * index + num_output))
        return Text(prompt, unique, True)
    return Text(prompt, _outputs(rng, source, prompt, num_output, alphabet), False)


def _prompt(rng: Random, source: Text, num_tokens: int, alphabet: int) -> list[int]:
    fresh = _fresh(rng, num_tokens, alphabet)
    kind: Literal["fresh", "repeat", "extend", "continue", "branch"]
    kind = rng.choice(("fresh", "repeat", "extend", "continue", "branch"))
    if kind == "fresh":
        return fresh
    if kind == "repeat":
        return list(source.prompt)
    if kind == "branch":
        whole = source.prompt + source.outputs
        return whole[: rng.randint(1, len(whole))]
    whole = source.prompt + (source.outputs if kind == "continue" else [])
    # Conversations would grow without end: past a few times the usual length they are cut.
    return (whole + fresh)[: max(len(source.prompt), 3 * num_tokens)]


def _outputs(rng: Random, source: Text, prompt: list[int], num_tokens: int, alphabet: int) -> list[int]:
    """Outputs that follow the source where the prompt is a beginning of it, else random ones."""
    whole = source.prompt + source.outputs
    follows = whole[: len(prompt)] == prompt and rng.random() < 0.8
    followed = whole[len(prompt) :] if follows else []
    return (followed + _fresh(rng, num_tokens, alphabet))[:num_tokens]


def _fresh(rng: Random, num_tokens: int, alphabet: int) -> list[int]:
    return [rng.randint(1, alphabet) for _ in range(num_tokens)]
