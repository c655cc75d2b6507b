"""What a run leaves behind: step, request and event rows, the same for both engines.

Every metric and every explanation is a pure function of these rows. Times are integer nanoseconds; tables
show seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from .request import Request


class Blocked(StrEnum):
    """Why a request was not admitted (or had to wait)."""

    ARRIVAL = "arrival"  # waited for the next step boundary
    SLOTS = "slots"  # max_num_seqs running
    MEMORY = "memory"  # not enough free KV blocks
    BUDGET = "budget"  # the step's token budget was used up
    ORDER = "order"  # someone ahead of it in the queue was blocked
    CHUNK = "chunk"  # the chunk-size policy's prefill tokens were used up
    TRANSFER = "transfer"  # KV still on its way


class Status(StrEnum):
    """How a request ended, or where it stood when the run did."""

    FINISHED = "finished"
    REFUSED = "refused"
    ABORTED = "aborted"
    UNFINISHED = "unfinished"


class StepKind(StrEnum):
    """What a step computed."""

    EMPTY = "empty"
    PREFILL = "prefill"
    DECODE = "decode"
    MIXED = "mixed"


class StepRecord(NamedTuple):
    """One step. Counts of running, waiting and blocks are those after planning."""

    step: int
    start_ns: int
    duration_ns: int
    """Device time; the tokens are committed when the host has taken them in, which is never earlier."""
    kind: StepKind
    num_prefill_tokens: int
    num_decodes: int
    context_tokens: int
    """Summed context of all scheduled requests, after the step."""
    num_running: int
    num_waiting: int
    free_blocks: int
    """Blocks that can be handed out, cached but unused ones included."""
    cached_blocks: int
    """Of the free blocks, those whose content the prefix index still holds."""
    kv_tokens: int
    """Summed context of all that run, after the step; a token that requests share counts for each of them."""
    refused_blocks: int
    """Blocks (the watermark's included) that had to be free for the request that memory kept out; 0: it kept none out.

    Only where blocks are counted request by request: 0 with the sglang preset, and after a preemption.
    """
    num_evicted: int
    num_preempted: int
    num_finished: int
    num_drafts: int
    num_accepted: int
    compute_ns: int
    memory_ns: int
    host_ns: int
    extrapolated: bool


@dataclass(slots=True)
class RequestRecord:
    """One request, written when it ended (or when the run did). None: that moment never came."""

    request_id: str
    tenant: str | None
    session: str | None
    priority: int
    prompt_tokens: int
    intended_ns: int
    """When the workload meant to send it."""
    sent_ns: int
    """When the client sent it."""
    admitted_ns: int | None = None
    """When it first left the waiting queue."""
    first_scheduled_ns: int | None = None
    """When the first step that computes something for it was planned."""
    first_token_ns: int | None = None
    last_token_ns: int | None = None
    cached_tokens: int = 0
    """Prefix hit at the first admission."""
    output_tokens: int = 0
    num_preemptions: int = 0
    num_chunks: int = 0
    """Prefill chunks, those of resumptions included."""
    blocked_by: Blocked | None = None
    """The reason that held it back longest before its first admission."""
    blocked_ns: int = 0
    """How long it waited before its first admission, all reasons together."""
    max_gap_ns: int | None = None
    """Longest gap between two of its output chunks; None where it had fewer than two."""
    status: Status = Status.UNFINISHED


def record_of(request: Request) -> RequestRecord:
    """The record of a request that was just sent."""
    return RequestRecord(
        request.id,
        request.tenant,
        request.session,
        request.priority,
        request.prompt.num_tokens,
        intended_ns=request.arrival_ns,
        sent_ns=request.arrival_ns,
    )


class EventKind(StrEnum):
    """What happened to a request's KV or to the request."""

    PREEMPT = "preempt"
    EVICT = "evict"
    REFUSE = "refuse"
    ABORT = "abort"
    SWAP_OUT = "swap_out"  # preempted, its computed KV copied to the host
    SWAP_IN = "swap_in"  # admitted again, its KV copied back
    SWAP_FULL = "swap_full"  # preempted, to be recomputed, since the host had no room
    SWAP_DROP = "swap_drop"  # ended while its KV was on the host


class EventRecord(NamedTuple):
    """Who was preempted or evicted, by whom, at which step."""

    step: int
    time_ns: int
    kind: EventKind
    request_id: str
    """The request preempted, swapped, refused or aborted; for an eviction the one that computed the evicted blocks."""
    by: str | None
    """The request for which it was done; None where it was the decode batch as a whole, or nobody else."""
    num_blocks: int
    reason: str
    """Refusals: why. Evictions, preemptions and swaps: `decode`, `prefill` or `admit`, what needed the blocks."""
