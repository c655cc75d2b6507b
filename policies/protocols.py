"""The plug-in contracts: who is next, who gives way, how much prefill a step holds, what is evicted, how a step forms.

A policy is one small class in one file, registered by name (`registry`). Its parameters are the keyword arguments of
its `__init__`. No policy imports `sim`, `real_engine`, SimPy or torch, and none learns how long an output will be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .core.builder import StepBuilder
    from .core.cache_entry import CacheEntry
    from .core.estimator import StepTimeEstimator
    from .core.outlook import Outlook
    from .core.radix_node import RadixNode
    from .core.sequence import Sequence
    from .core.waiting_queue import WaitingQueue


class EngineView(Protocol):
    """What a policy may see of the engine; read-only."""

    now_ns: int
    max_num_batched_tokens: int
    max_num_seqs: int
    outlook: Outlook
    """What the next step is going to hold."""

    @property
    def num_running(self) -> int:
        """Running sequences."""
        ...

    @property
    def num_waiting(self) -> int:
        """Waiting and preempted sequences."""
        ...

    @property
    def num_free_blocks(self) -> int:
        """KV blocks that can be handed out, evictable ones included."""
        ...

    num_prefilled: int
    """Tokens prefilled so far."""

    def num_outputs(self, sequence: Sequence) -> int:
        """Output tokens of a sequence that are delivered."""
        ...

    def peek_prefix(self, sequence: Sequence) -> int:
        """Tokens of a waiting sequence that the prefix index holds, or the host; nothing changes."""
        ...

    def match_prefix(self, sequence: Sequence) -> int:
        """The same as a look-up that counts: on a radix tree it makes what it finds the latest used."""
        ...

    def prefix_node(self, sequence: Sequence) -> RadixNode:
        """`match_prefix` on a radix tree: the node where the prefix ends."""
        ...

    @property
    def prefix_root(self) -> RadixNode:
        """The radix tree's root."""
        ...


class AsksStepTimes(Protocol):
    """A policy of any kind that requires `step_time`: it is given the means to ask how long a step would take."""

    def use_estimator(self, estimator: StepTimeEstimator) -> None:
        """Called once, before the first step. An estimate is a pure function of the step's shape."""
        ...


class SchedulingPolicy(Protocol):
    """Who is next. The queue keeps its order from step to step; its first sequence is admitted first.

    An order that does not change while requests wait is best kept by `insert` (`WaitingQueue.insert_by`): then a step
    costs the same however many wait.
    """

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """Put a new arrival into the queue."""
        ...

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """Re-order the queue in place; called once a step, before admissions. It may leave it as it is."""
        ...


class PreemptionPolicy(Protocol):
    """Who gives way when memory is short, and where it waits then.

    A policy that sets `takes_last = True` promises that its victim is always the last of `running`; then nobody else
    has to be looked at. One whose attribute `mode` is "swap" lets the victims' KV go to the host, where there is room,
    instead of having it recomputed.
    """

    def victim(self, running: list[Sequence]) -> Sequence:
        """The sequence to preempt, one of `running` (in order of admission, never empty). Changes nothing.

        None of them is in the decode batch: `computed` and `num_tokens` can be read as they are.
        """
        ...

    def put_back(self, queue: WaitingQueue, sequence: Sequence, scheduling: SchedulingPolicy) -> None:
        """Put a preempted sequence into the queue."""
        ...


class ChunkSizePolicy(Protocol):
    """How many prefill tokens a step may hold. None: no limit but `max_num_batched_tokens`."""

    def step_tokens(self, view: EngineView) -> int | None:
        """Prefill tokens that this step may hold, all requests together; asked once a step."""
        ...

    def request_tokens(self, view: EngineView) -> int | None:
        """Tokens that one request may be given in this step; asked once a step."""
        ...


class EvictionPolicy(Protocol):
    """Which cached content that nobody uses goes first. Both prefix indexes ask it, and keep their entries in order.

    The index alone knows what may go: never what someone uses, never content before the cached content that builds on
    it. Entries of equal rank go in order of last use, the deepest first.

    A policy that sets `by_release = True` promises that its rank is `entry.last_used`; hashed blocks then need no heap.
    """

    def rank(self, entry: CacheEntry) -> float | tuple[float, ...]:
        """The smallest goes first: numbers, or tuples of one length.

        Pure: it depends on `entry` alone, so that an index may keep it until the entry changes. Never NaN.
        """
        ...


class BatchingPolicy(Protocol):
    """How a step is composed out of running and waiting sequences.

    A policy that sets `decodes_alone = True` promises: with nobody waiting and all running sequences in the decode
    batch it calls `decode_all` and nothing else. Stretches of such steps are then carried out at once. One that sets
    `recomputes_only = True` cannot take back what lies on the host; no preemption that swaps goes with it. On
    `prefix_index = "radix_tree"` memory is that of SGLang (`RadixCache`); else it is hashed blocks (`KVCache`).
    """

    def compose(self, step: StepBuilder) -> None:
        """Fill the step by calling the builder. Called once a step, with at least one sequence in the engine."""
        ...
