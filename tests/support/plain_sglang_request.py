"""A request of the plain SGLang scheduler, and what one round did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .plain_radix import PlainNode

MOST_RESERVED = 4096
"""Output tokens beyond these are never reserved."""


@dataclass(slots=True, eq=False)
class PlainSglangRequest:
    """A request: its prompt, all that it will ever say, and how far it has come."""

    id: str
    arrival_step: int
    priority: int
    ignores_eos: bool
    prompt: list[int]
    answer: list[int]
    num_outputs: int = 0
    num_kv: int = 0
    """Tokens whose keys and values are held for it."""
    num_in_tree: int = 0
    """The first of them, which stand in the tree and are locked."""
    node: PlainNode | None = None
    """Where its lock ends."""
    num_inserted: int = 0
    """How far its own inserts have reached since it last started anew: no hits are counted up to there."""
    entry: int = 0
    """When it entered the queue, counted in entries."""
    prefilled_before: int = 0
    """Prefill tokens that the engine had processed when it entered the queue."""

    @property
    def tokens(self) -> list[int]:
        """All that is known of it: the prompt, and the outputs so far."""
        return self.prompt + self.answer[: self.num_outputs]

    @property
    def max_new(self) -> int:
        """Output tokens that are reserved for it when it is admitted."""
        return min(len(self.answer), MOST_RESERVED)

    @property
    def still_new(self) -> int:
        """Output tokens that are reserved for what it has yet to say."""
        return min(len(self.answer) - self.num_outputs, MOST_RESERVED)

    @property
    def is_complete(self) -> bool:
        """Whether all outputs are there."""
        return self.num_outputs == len(self.answer)


def request_of(entry: Mapping[str, Any], index: int) -> PlainSglangRequest:
    """The request that stands at an index of a case; outputs that are not told are unique tokens."""
    told = list(entry.get("output_token_ids") or ())
    unique = [1_000_000 + 100_000 * index + j for j in range(entry["output_len"])]
    return PlainSglangRequest(
        id=entry["id"],
        arrival_step=entry["arrival_step"],
        priority=entry.get("priority") or 0,
        ignores_eos=bool(entry.get("ignore_eos")),
        prompt=list(entry["prompt_token_ids"]),
        answer=(told + unique[len(told) :])[: entry["output_len"]],
    )


@dataclass(slots=True)
class PlainRound:
    """What one round computes: prompt tokens of some requests, then one token of each of the others."""

    prefills: dict[PlainSglangRequest, int] = field(default_factory=dict)
    decodes: list[PlainSglangRequest] = field(default_factory=list)
    cached: dict[PlainSglangRequest, int] = field(default_factory=dict)
    """What each prefill had before."""
    retracted: list[PlainSglangRequest] = field(default_factory=list)
    aborted: list[PlainSglangRequest] = field(default_factory=list)

    @property
    def members(self) -> list[PlainSglangRequest]:
        """Everyone in the batch, in its order."""
        return [*self.prefills, *self.decodes]

    @property
    def mode(self) -> str:
        """The log's word for it."""
        if self.prefills:
            return "mixed" if self.decodes else "prefill"
        return "decode" if self.decodes else "idle"
