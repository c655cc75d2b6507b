"""Policies that are none of the house's: one of each kind that is as good as the house's, and many that are not."""

from __future__ import annotations

from itertools import count

from llmsim.policies.batching.unified import Unified
from llmsim.policies.chunk_size.fixed import Fixed
from llmsim.policies.core.builder import StepBuilder
from llmsim.policies.core.cache_entry import CacheEntry
from llmsim.policies.core.sequence import Sequence
from llmsim.policies.core.waiting_queue import WaitingQueue
from llmsim.policies.eviction.lru import Lru
from llmsim.policies.preemption.newest import Newest
from llmsim.policies.protocols import EngineView, SchedulingPolicy
from llmsim.policies.scheduling.fcfs import Fcfs


class GoodBatching(Unified):
    """As unified."""


class GoodScheduling(Fcfs):
    """As fcfs."""


class GoodPreemption(Newest):
    """As newest."""


class GoodChunk(Fixed):
    """As fixed."""


class GoodEviction(Lru):
    """As lru."""


class Vague(Lru):
    by_release = False

    def rank(self, entry: CacheEntry) -> float:
        return None  # type: ignore[return-value]


class NoNumber(Lru):
    by_release = False

    def rank(self, entry: CacheEntry) -> tuple[float, ...]:  # type: ignore[override]
        return 1.0, float("nan")


class Wavers(Lru):
    by_release = False

    def __init__(self) -> None:
        self._calls = count()

    def rank(self, entry: CacheEntry) -> int | tuple[int, ...]:  # type: ignore[override]
        return 1 if next(self._calls) % 2 else (1, 0)


class Raises(Fcfs):
    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        raise KeyError("nothing")


class Exits(Fcfs):
    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        raise SystemExit(0)


class Drops(Fcfs):
    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        queue.pop_first()


class Doubles(Fcfs):
    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        if len(queue) > 1:
            queue.append(next(iter(queue)))


class Invents(Fcfs):
    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        queue.append(Sequence(next(iter(queue)).request, 0, next(iter(queue)).record))


class Forgets(Fcfs):
    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        pass


class Hangs(Fcfs):
    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        while True:
            try:
                len(queue)
            except Exception:
                continue


class Unknown(Newest):
    takes_last = False

    def victim(self, running: list[Sequence]) -> Sequence:
        return "r0"  # type: ignore[return-value]


class Empties(Newest):
    takes_last = False

    def victim(self, running: list[Sequence]) -> Sequence:
        running.clear()
        return running[0]


class Loses(Newest):
    def put_back(self, queue: WaitingQueue, sequence: Sequence, scheduling: SchedulingPolicy) -> None:
        pass


class Negative(Fixed):
    def step_tokens(self, view: EngineView) -> int | None:
        return -1


class Broken(Fixed):
    def request_tokens(self, view: EngineView) -> int | None:
        return 2.5  # type: ignore[return-value]


class Insatiable:
    def compose(self, step: StepBuilder) -> None:
        for sequence in step.loose():
            step.extend(sequence, 10_000)
        Unified().compose(step)


class Overcommits:
    def compose(self, step: StepBuilder) -> None:
        Unified().compose(step)
        while (sequence := step.next_waiting()) is not None and step.num_running < step.config.max_num_seqs:
            match = step.match(sequence)
            step.admit(sequence, match, sequence.num_tokens - match.num_blocks * step.config.block_size)


class Crowds:
    def compose(self, step: StepBuilder) -> None:
        while (sequence := step.next_waiting()) is not None:
            step.admit(sequence, step.match(sequence), 1)


class Regrets:
    def compose(self, step: StepBuilder) -> None:
        Unified().compose(step)
        for sequence, _, _ in step.admitted:
            step.preempt(sequence, None)


class Revives:
    def compose(self, step: StepBuilder) -> None:
        if (sequence := step.next_waiting()) is not None:
            step.extend(sequence, 1)


class Repeats:
    def compose(self, step: StepBuilder) -> None:
        Unified().compose(step)
        step.decode_all()
        step.decode_all()


class Circles:
    def compose(self, step: StepBuilder) -> None:
        while True:
            step.running()


class Retries:
    def compose(self, step: StepBuilder) -> None:
        Unified().compose(step)
        while (sequence := step.next_waiting()) is not None and step.budget:
            step.block(step.admit(sequence, step.match(sequence), 1))  # type: ignore[arg-type]
