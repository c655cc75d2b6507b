"""A CPU's time as if nobody else used the machine: a thread's own time, at the speed that its processor has at best.

What other programs take of a processor's caches, memory bandwidth and shared units slows a thread down by some percent
for minutes, and by half for moments, and on a virtual machine nobody tells. So now and then a small piece of work that
is always the same is timed, a product out of the cache and one out of memory; the thread's time counts as much less as
that piece takes longer than it does at best. On a machine of one's own this is the thread's time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import numpy as np
import torch

EVERY_NS = 8_000_000
"""Of the thread's time between two looks; a look takes half a millisecond."""
RECENT = 5
"""Looks whose median is the speed now: a single one may be disturbed itself."""
FIRST = 200
"""Looks before the first one counts."""
KNOWN = 20_000
"""Looks that tell what is best, as their 5th percentile."""
BEST = 5.0
AGAIN = 50
"""Looks until what is best is looked up again."""

Look = Callable[[], tuple[float, float]]
"""Times two pieces of work: out of the cache, out of memory."""


class ProcessorSpeed:
    """How fast the processor is, as a share of its best."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT)
        self._known: deque[tuple[float, float]] = deque(maxlen=KNOWN)
        self._best = np.ones(2)
        self._num_since = 0

    def now(self) -> float:
        """Look, and tell: 1 at best, 0.5 where everything takes twice as long."""
        for _ in range(1 if self._known else FIRST):
            found = self._look()
            self._recent.append(found)
            self._known.append(found)
            self._num_since += 1
        if self._num_since >= AGAIN:
            self._best, self._num_since = np.percentile(np.array(self._known), BEST, axis=0), 0
        slowness = np.median(np.array(self._recent), axis=0) / self._best
        return float(1 / slowness.mean())


class SteadyClock:
    """To be called in the thread that works, whose time it tells in nanoseconds; `look` before each piece of work."""

    def __init__(self, speed: ProcessorSpeed, thread_time_ns: Callable[[], int] = time.thread_time_ns) -> None:
        self._speed = speed
        self._thread_time_ns = thread_time_ns
        self._share = 1.0
        self._until_ns = self._looked_ns = 0
        self._steady_ns = 0.0

    def __call__(self) -> int:
        """The time."""
        now_ns = self._thread_time_ns()
        self._steady_ns += (now_ns - self._until_ns) * self._share
        self._until_ns = now_ns
        return int(self._steady_ns)

    def look(self) -> None:
        """See how fast the processor is now, if that is not known from just before. Meanwhile time stands still."""
        self()
        if self._looked_ns and self._until_ns - self._looked_ns < EVERY_NS:
            return
        self._share = self._speed.now()
        self._until_ns = self._looked_ns = self._thread_time_ns()


class _Pieces:
    """The work that is always the same."""

    def __init__(self) -> None:
        source = torch.Generator().manual_seed(0)
        self._rows, self._square = (torch.randn(n, 512, generator=source) for n in (48, 512))
        self._large = torch.randn(16, 1024, 1024, generator=source)  # 4 MiB a piece, more than a cache in all
        self._row = torch.randn(1, 1024, generator=source)
        self._next = 0

    def __call__(self) -> tuple[float, float]:
        self._next = (self._next + 1) % len(self._large)
        with torch.inference_mode():
            begun = time.thread_time_ns()
            torch.mm(self._rows, self._square)
            between = time.thread_time_ns()
            torch.mm(self._row, self._large[self._next])
            return between - begun, time.thread_time_ns() - between


_speed: ProcessorSpeed | None = None


def processor_speed() -> ProcessorSpeed:
    """This process's: runs and profiles of one process share what is best."""
    global _speed
    if _speed is None:
        _speed = ProcessorSpeed(_Pieces())
    return _speed
