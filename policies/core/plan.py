"""What the core hands out and takes back: the plan of a step, its result, what its commit set off."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import NamedTuple

from .estimator import StepShape
from .records import Blocked, EventKind
from .sequence import Sequence

Gap = tuple[int, int]
"""Time since the last output chunk in ns, and of how many requests; those of the warm-up are left out."""

COPIES = frozenset({EventKind.SWAP_OUT, EventKind.SWAP_IN})
"""Swaps that move bytes."""


class Row:
    """One sequence scheduled by itself, outside the decode batch."""

    __slots__ = ("is_prefill", "num_computed", "num_drafts", "num_tokens", "samples", "sequence")

    def __init__(self, sequence: Sequence, num_tokens: int, num_drafts: int, is_prefill: bool) -> None:
        self.sequence = sequence
        self.num_tokens = num_tokens
        """Tokens computed in this step, drafts included."""
        self.num_computed = sequence.computed
        """Tokens computed before."""
        self.num_drafts = num_drafts
        self.is_prefill = is_prefill
        self.samples = False
        """Whether the step yields a token for it."""


class Admission(NamedTuple):
    """A sequence that left the waiting queue."""

    sequence: Sequence
    num_cached_tokens: int
    resumed: bool
    """Preempted before."""


class Preemption(NamedTuple):
    """A sequence that gave way."""

    sequence: Sequence
    by: Sequence | None
    """Whom it gave way to; None: all that run on."""
    num_blocks: int
    reason: str


class Swap(NamedTuple):
    """A copy of KV between GPU and host, or why there was none.

    `SWAP_OUT`: a preempted sequence's computed blocks, to the host. `SWAP_FULL`: they did not fit there.
    `SWAP_IN`: back, those that the prefix index no longer held. `SWAP_DROP`: it ended; nothing was copied.
    Which blocks these are stands in block tables: see StepPlan.
    """

    kind: EventKind
    sequence: Sequence
    by: Sequence | None
    """Whom it gave way to; None: all that run on, or nobody."""
    num_blocks: int
    reason: str


class Grant(NamedTuple):
    """Blocks of a sequence's table, from index `start` on: new ones, or others in place of those that stood there.

    Others hold the same content: those before become free, and what is in flight may still use them.
    """

    sequence: Sequence
    start: int
    blocks: list[int]


class Eviction(NamedTuple):
    """Cached blocks that were given up for someone."""

    owner: str
    """The request that had computed them."""
    by: str | None
    """The request that needed the memory; None: the decode batch as a whole."""
    num_blocks: int
    reason: str
    """`decode`, `prefill` or `admit`."""


@dataclass(slots=True, eq=False)
class StepPlan:
    """One step as planned. The core's state has changed already; an executor only carries it out.

    The decode batch is persistent: the plan says that all its members gain a token (`batch_number`), who joins after
    this step and who left before it; an executor keeps its own mirror.

    So it does of block tables, one row for each running sequence, where they are told (`grants`). In this order:

    1. `SWAP_OUT` reads its first `num_blocks` blocks in the victim's row as it stands, before this plan touches it.
    2. Rows of the `preempted` go, then the `admitted`, also those that were preempted before, begin with empty ones,
       then `grants` are applied in their order. They name nobody who does not run. Rows of those that ended since the
       plan before may go at any time. (One that was admitted and gave way in the same plan does not run. No policy of
       the house does that; where preemption swaps it is an error.)
    3. `SWAP_IN` writes, of the blocks that were copied out, the last `num_blocks` to the same places of the row as it
       stands now.
    4. The step's kernels run. A row has a block for each token computed up to then; those behind are not used yet.

    Copies of step 1 come before all writes of this plan: the victim's blocks may be someone else's in steps 2 to 4.
    """

    step: int
    now_ns: int
    rows: Items[Row] = ()
    """Sequences outside the decode batch, in order of admission."""
    batch_number: int | None = None
    """Which step of the decode batch this is; None: the batch is not part of it."""
    num_decodes: int = 0
    """Members of the decode batch, one token each."""
    decode_context_tokens: int = 0
    """Their summed context, the token of this step included."""
    max_decode_context: int = 0
    num_prefill_tokens: int = 0
    num_drafts: int = 0
    admitted: Items[Admission] = ()
    preempted: Items[Preemption] = ()
    swaps: Items[Swap] = ()
    """In the order in which they were decided. Copies to the host come first, those back next, then the step's kernels,
    all on the same stream."""
    aborted: Items[Sequence] = ()
    """Ended because memory can never hold them."""
    joined: Items[Sequence] = ()
    """Members of the decode batch from the next step on."""
    left: Items[Sequence] = ()
    """Members that left the batch since the plan before, and those that end with this one."""
    detached: Items[Sequence] = ()
    """Of the `num_decodes`, those that have left the batch since: their token is delivered one by one."""
    evictions: Items[Eviction] = ()
    grants: Items[Grant] = ()
    """Where a real engine asks for them (`tells_grants` of the core): the changes of block tables since the plan
    before, in their order."""
    hollow: Items[int] = ()
    """Told with the grants: blocks that entered the prefix index in this step for one who gave way in it. Whoever is
    admitted onto one, now or later, has to compute what it is to hold, unless it was granted anew in between."""
    blocked: Blocked | None = None
    """What kept the first waiting sequence out."""
    refused_blocks: int = 0
    """Blocks that had to be free for it, where `StepBuilder.admit` found memory short."""
    num_running: int = 0
    num_waiting: int = 0
    num_free_blocks: int = 0
    num_cached_blocks: int = 0
    kv_tokens: int = 0
    """Summed context of all that run, after the step, those included that it has nothing for."""
    shared_tokens: int = 0
    """Of it, what another that runs has in the same blocks: of each such token all its readers but one."""

    @property
    def num_tokens(self) -> int:
        """All tokens computed in this step."""
        return self.num_decodes + sum(row.num_tokens for row in self.rows)

    @property
    def num_blocks_copied(self) -> int:
        """Blocks that go to the host or come back from it before this step."""
        return sum(swap.num_blocks for swap in self.swaps if swap.kind in COPIES)

    def context_tokens(self) -> int:
        """Summed context of all that is scheduled, after the step."""
        return self.decode_context_tokens + sum(row.num_computed + row.num_tokens for row in self.rows)

    def shape(self) -> StepShape:
        """The step as a cost model sees it."""
        if not self.rows:
            size = self.num_decodes
            return StepShape(
                (), size, self.decode_context_tokens, self.max_decode_context, size, shared_tokens=self.shared_tokens
            )
        chunks, decodes, context, longest, unfinished = (
            [],
            self.num_decodes,
            self.decode_context_tokens,
            self.max_decode_context,
            0,
        )
        for row in self.rows:
            if row.is_prefill:
                chunks.append((row.num_tokens, row.num_computed))
                unfinished += not row.samples
            else:
                decodes += 1
                after = row.num_computed + row.num_tokens
                context += after
                longest = max(longest, after)
        drafts = sum(row.num_drafts for row in self.rows if not row.is_prefill)
        samples = decodes + len(chunks)
        return StepShape(chunks, decodes, context, longest, samples, drafts, unfinished, self.shared_tokens)

    def digest(self) -> str:
        """What was decided, as one line: equal digests are equal plans."""
        rows = [f"{r.sequence.id}:{r.num_computed}+{r.num_tokens}/{r.num_drafts}{'s' * r.samples}" for r in self.rows]
        admitted = [f"{a.sequence.id}:{a.num_cached_tokens}{'r' * a.resumed}" for a in self.admitted]
        gone = [f"{e.owner}:{e.num_blocks}" for e in self.evictions]
        swaps = [f"{swap.kind}:{swap.sequence.id}:{swap.num_blocks}" for swap in self.swaps]
        batch = f"{self.batch_number}:{self.num_decodes}:{self.decode_context_tokens}:{self.max_decode_context}"
        return "|".join(
            (
                batch,
                *(",".join(part) for part in (rows, admitted, [p.sequence.id for p in self.preempted], gone)),
                ",".join(s.id for s in self.aborted),
                ",".join(s.id for s in self.joined),
                ",".join(s.id for s in self.left),
                f"{self.num_running}:{self.num_waiting}:{self.num_free_blocks}:{self.num_cached_blocks}",
                *swaps,
            )
        )


@dataclass(slots=True)
class StepResult:
    """What an executor reports of a step."""

    duration_ns: int
    """Device time."""
    stopped: Items[str] = ()
    """Requests whose token of this step was their last (EOS or a stop), before `max_tokens`."""
    accepted: Mapping[str, int] | None = None
    """Accepted draft tokens by request."""
    tokens: Mapping[str, list[int]] | None = None
    """Literal tokens by request; None: the requests' own output content."""


@dataclass(slots=True)
class StepEvents:
    """What a commit set off."""

    finished: Items[Sequence] = ()
    """In the order in which their blocks were freed."""
    gaps: Items[Gap] = ()
    num_accepted: int = 0
