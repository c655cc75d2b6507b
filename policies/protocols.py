"""The plug-in contracts: who is next, who gives way, how much prefill a step holds, what is evicted, how a step forms.

A policy is one small class in one file, registered by name (`registry`). Its parameters are the keyword arguments of
its `__init__`. No policy imports `sim`, `real_engine`, SimPy or torch, and none learns how long an output will be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .core.builder import StepBuilder
    from .core.estimator import StepTimeEstimator
    from .core.hash_blocks import Run
    from .core.outlook import Outlook
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

    def num_outputs(self, sequence: Sequence) -> int:
        """Output tokens of a sequence that are delivered."""
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
    has to be looked at.
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
    """Which cached content that nobody uses goes first. Choosing is not evicting.

    Told of every change; keeps its own order (`Run.older` and `Run.newer` are its to use). On hashed blocks it must
    never choose content before the cached content that builds on it: what a sequence frees comes deepest first.
    """

    def freed(self, run: Run) -> None:
        """Nobody uses `run` any more."""
        ...

    def reused(self, run: Run) -> None:
        """`run`, so far evictable, was hit."""
        ...

    def split(self, run: Run, front: Run) -> None:
        """The evictable `run` gave its first blocks to the new run `front`, which is evictable too."""
        ...

    def choose(self, num_blocks: int) -> list[tuple[Run, int]]:
        """Evictable runs and how many blocks of each, from its end, that make `num_blocks`.

        Whole runs, but for the last one. One call a shortage; changes nothing.
        """
        ...

    def evicted(self, run: Run) -> None:
        """All blocks of the evictable `run` are gone."""
        ...

    def check_integrity(self, evictable: set[int]) -> None:
        """Assert that it knows exactly the runs with these `id()`s."""
        ...


class BatchingPolicy(Protocol):
    """How a step is composed out of running and waiting sequences.

    A policy that sets `decodes_alone = True` promises: with nobody waiting and all running sequences in the decode
    batch it calls `decode_all` and nothing else. Stretches of such steps are then carried out at once.
    """

    def compose(self, step: StepBuilder) -> None:
        """Fill the step by calling the builder. Called once a step, with at least one sequence in the engine."""
        ...
