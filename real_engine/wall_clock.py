"""The clock on the wall, which starts at 0 with a run and can be woken from its sleep."""

from __future__ import annotations

import time
from contextlib import suppress
from queue import Empty, SimpleQueue


class WallClock:
    """Nanoseconds since it was made. A SimpleQueue is the bell: it may be rung in a signal handler, or by a thread."""

    def __init__(self) -> None:
        self._start_ns = time.monotonic_ns()
        self._bell: SimpleQueue[None] = SimpleQueue()

    def now_ns(self) -> int:
        """Never goes back."""
        return time.monotonic_ns() - self._start_ns

    def sleep_until(self, due_ns: int) -> None:
        """Return then, or as soon as `wake` is called; at once where it was called since the last sleep."""
        left_ns = due_ns - self.now_ns()
        if left_ns > 0:
            with suppress(Empty):
                self._bell.get(timeout=left_ns / 1e9)

    def wake(self) -> None:
        """End the sleep that is on, or the next one."""
        self._bell.put(None)
