"""The oracle that SGLang's preset is tested against: a case in, the decision log of its golden cases out."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from .plain_sglang_request import PlainRound, request_of
from .plain_sglang_scheduler import PlainSglang

DEFAULTS: dict[str, Any] = {
    "max_total_tokens": 100_000,
    "page_size": 1,
    "chunked_prefill_size": 8192,
    "max_prefill_tokens": 16384,
    "max_running_requests": 256,
    "schedule_policy": "fcfs",
    "schedule_conservativeness": 1.0,
    "enable_mixed_chunk": False,
    "disable_radix_cache": False,
    "radix_eviction_policy": "lru",
    "enable_priority_scheduling": False,
    "schedule_low_priority_values_first": False,
    "prefill_decode_interval": 0,
}


def decision_log(case: dict[str, Any], seen: Counter[str] | None = None) -> list[dict[str, Any]]:
    """One line a round; `seen` is told how often the rarer things happened.

    Raises OutOfMemory where the engine ends so, AssertionError if the case can never end, or if memory got lost.
    """
    return list(PlainSglangRun(case, seen).lines())


class PlainSglangRun:
    """Drives a plain scheduler through a case, one round a step."""

    def __init__(self, case: dict[str, Any], seen: Counter[str] | None = None) -> None:
        requests = [request_of(entry, index) for index, entry in enumerate(case["requests"])]
        self.arrivals = deque(sorted(requests, key=lambda request: request.arrival_step))
        self.scheduler = PlainSglang(DEFAULTS | case["config"], requests, Counter() if seen is None else seen)
        self.num_idle = 0  # lines in a row without a batch

    def lines(self) -> Iterator[dict[str, Any]]:
        """Run the case to its end."""
        scheduler, step, was_busy = self.scheduler, 0, False
        while self.arrivals or was_busy:
            while self.arrivals and self.arrivals[0].arrival_step <= step:
                scheduler.add(self.arrivals.popleft())
                was_busy = True
            if was_busy:
                yield (line := {"step": step} | self._line())
                was_busy = line["mode"] != "idle" or bool(scheduler.waiting or scheduler.chunk)
                step += 1
            else:
                step = self.arrivals[0].arrival_step
        assert scheduler.memory.num_available == scheduler.memory.capacity, "memory got lost"

    def _line(self) -> dict[str, Any]:
        scheduler, memory = self.scheduler, self.scheduler.memory
        num_evicted_before = memory.num_evicted
        result = scheduler.play()
        line = self._describe(result)
        self._count_idle(line)
        return line | {
            "finished": [request.id for request in scheduler.update(result)],
            "free_tokens": memory.num_free,
            "evictable": memory.num_evictable,
            "protected": memory.num_protected,
            "evicted_tokens": memory.num_evicted - num_evicted_before,
        }

    def _describe(self, result: PlainRound) -> dict[str, Any]:
        scheduler = self.scheduler
        return {
            "mode": result.mode,
            "batch": {r.id: n for r, n in result.prefills.items()} | {r.id: 1 for r in result.decodes},
            "prefix": {r.id: n for r, n in result.cached.items()},
            "chunked": scheduler.chunk.id if scheduler.chunk else None,
            "retracted": [request.id for request in result.retracted],
            "aborted": [request.id for request in result.aborted],
            "ratio": round(scheduler.ratio, 6),
        }

    def _count_idle(self, line: dict[str, Any]) -> None:
        """More lines without a batch than the interval can explain, while someone waits, are a stall."""
        is_idle = line["mode"] == "idle"
        self.num_idle = self.num_idle + 1 if is_idle else 0
        assert self.num_idle <= self.scheduler.interval + 1, "nothing moves"
