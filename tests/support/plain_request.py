"""A request of the plain scheduler, and what one scheduling call did with the requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from .plain_pool import Block


@dataclass(slots=True, eq=False)
class PlainRequest:
    """A request: `tokens` (prompt and outputs so far), chased by `computed`."""

    id: str
    index: int
    arrival_step: int
    priority: int
    tokens: list[int]
    outputs: list[int]  # all that it will ever sample
    accept: list[int]  # drafts the model accepts, verify step by verify step, cycled
    prompt_len: int
    status: Literal["waiting", "running", "finished"] = "waiting"
    computed: int = 0
    drafts: int = 0
    placeholders: int = 0  # sampled tokens that are still in flight (asynchronous scheduling)
    num_verified: int = 0  # verify steps so far
    was_admitted: bool = False
    blocks: list[Block] = field(default_factory=list)
    num_entered: int = 0  # leading blocks that are in the map
    keys: list[int] = field(default_factory=list)  # one a full block of `tokens`

    @property
    def order(self) -> tuple[int, int, int]:
        """Urgency under `priority`: the smallest goes first, the largest is the victim."""
        return self.priority, self.arrival_step, self.index

    @property
    def num_outputs(self) -> int:
        """Tokens sampled so far."""
        return len(self.tokens) - self.prompt_len

    @property
    def is_complete(self) -> bool:
        """Whether all outputs are there."""
        return self.num_outputs == len(self.outputs)

    def accept_drafts(self, num_drafts: int) -> int:
        """How many of the drafts that were scheduled survive verification."""
        if num_drafts == 0:
            return 0
        wanted = self.accept[self.num_verified % len(self.accept)] if self.accept else 0
        self.num_verified += 1
        return min(wanted, num_drafts, len(self.outputs) - self.num_outputs - 1)

    def sample(self, num_tokens: int) -> None:
        """Append the next outputs."""
        self.tokens += self.outputs[self.num_outputs : self.num_outputs + num_tokens]


def request_of(entry: dict[str, Any], index: int) -> PlainRequest:
    """The request at `index` of a case; without given outputs they are unique (golden/README.md)."""
    unique = range(1_000_000 + 100_000 * index, 1_000_000 + 100_000 * index + entry["output_len"])
    return PlainRequest(
        id=entry["id"],
        index=index,
        arrival_step=entry["arrival_step"],
        priority=entry.get("priority", 0),
        tokens=list(entry["prompt_token_ids"]),
        outputs=list(entry.get("output_token_ids", unique))[: entry["output_len"]],
        accept=list(entry.get("accept", [])),
        prompt_len=len(entry["prompt_token_ids"]),
    )


@dataclass(slots=True)
class PlainStep:
    """What one scheduling call did; `scheduled` is in the order in which outputs are processed."""

    budget: int
    threshold: int | None  # the most tokens that one request may get
    num_running: int = 0  # running requests that were scheduled, and those of them that got a prefill chunk
    num_running_chunks: int = 0
    scheduled: dict[PlainRequest, int] = field(default_factory=dict)
    drafts: dict[PlainRequest, int] = field(default_factory=dict)
    samples: set[PlainRequest] = field(default_factory=set)
    new: dict[PlainRequest, int] = field(default_factory=dict)  # cached tokens at admission
    resumed: dict[PlainRequest, int] = field(default_factory=dict)
    preempted: list[PlainRequest] = field(default_factory=list)

    def give(self, request: PlainRequest, num_tokens: int, num_drafts: int) -> None:
        """Spend budget on a request."""
        self.scheduled[request] = num_tokens
        self.budget -= num_tokens
        if num_drafts > 0:
            self.drafts[request] = num_drafts

    def take_back(self, request: PlainRequest) -> bool:
        """Undo `give` for a victim; false if the step held nothing of it."""
        self.drafts.pop(request, None)
        self.budget += self.scheduled.get(request, 0)
        return self.scheduled.pop(request, 0) > 0
