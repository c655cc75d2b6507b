"""Work for a device, done in the order in which it is sent, while the host goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.int64]
Work = Callable[[], Tensor]
Clock = Callable[[], int]


def host_clock() -> Clock:
    """What times a CPU's work where no real time has to be met, in nanoseconds; to be called in the working thread.

    Where one thread computes: the time for which it had a processor. What other processes took of it meanwhile is not
    the work's, and hits long pieces of it more often than short ones, so that medians would not see past it.
    """
    return time.thread_time_ns if torch.get_num_threads() == 1 else time.perf_counter_ns


class Finished(NamedTuple):
    """What came of a piece of work."""

    values: Ints
    """What it returned, on the host."""
    duration_ns: int
    """Time on the device."""


class Pending(Protocol):
    """Work on its way."""

    def wait(self) -> Finished:
        """Wait for it. Raises what it raised. Once."""
        ...


class Stream(Protocol):
    """A device's queue of work."""

    def send(self, work: Work) -> Pending:
        """Queue work that returns a tensor of integers."""
        ...

    def close(self) -> None:
        """Wait for all of it."""
        ...


class ThreadStream:
    """A CPU as a device: one thread does the work, so that the host can plan the next step meanwhile."""

    def __init__(self, now_ns: Clock = time.perf_counter_ns) -> None:
        """`now_ns` times the work, and is called in its thread: see `host_clock`."""
        self._pool = ThreadPoolExecutor(1, "device")
        self._now_ns = now_ns

    def send(self, work: Work) -> _PendingFuture:
        """Queue work."""
        return _PendingFuture(self._pool.submit(_timed, work, self._now_ns))

    def close(self) -> None:
        """Wait for all of it."""
        self._pool.shutdown()


class _PendingFuture:
    def __init__(self, future: Future[Finished]) -> None:
        self._future = future

    def wait(self) -> Finished:
        return self._future.result()


def _timed(work: Work, now_ns: Clock) -> Finished:
    start_ns = now_ns()
    with torch.inference_mode():
        values: Ints = work().numpy()
    return Finished(values, now_ns() - start_ns)


class CudaStream:
    """A GPU's current stream: launches return at once, an event says when the device has got there."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def send(self, work: Work) -> _PendingEvent:
        """Launch work, and the copy of what it returns to the host."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.device(self._device), torch.inference_mode():
            start.record()
            on_device = work()
            end.record()
            values = torch.empty(on_device.shape, dtype=on_device.dtype, pin_memory=True)
            values.copy_(on_device, non_blocking=True)
            copied = torch.cuda.Event()
            copied.record()
        return _PendingEvent(values, start, end, copied)

    def close(self) -> None:
        """Wait for all of it."""
        torch.cuda.synchronize(self._device)


class _PendingEvent:
    def __init__(
        self, values: Tensor, start: torch.cuda.Event, end: torch.cuda.Event, copied: torch.cuda.Event
    ) -> None:
        self._values = values
        self._start, self._end, self._copied = start, end, copied

    def wait(self) -> Finished:
        self._copied.synchronize()
        return Finished(self._values.numpy(), round(self._start.elapsed_time(self._end) * 1e6))
