"""Ctrl-C while a run in real time lasts: the first stops it at a step's end, the second breaks it off."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class RunInterrupted(Exception):
    """A run was stopped before its end, and what it had done is written; the message says so."""


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """In here the first SIGINT or SIGTERM calls `stop`, which must be quick; the next raises KeyboardInterrupt.

    Signals reach the main thread alone: elsewhere, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [signal.getsignal(number) for number in SIGNALS]
    is_stopping = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal is_stopping
        if is_stopping:
            raise KeyboardInterrupt
        is_stopping = True
        stop()

    try:
        for number in SIGNALS:
            signal.signal(number, on_signal)
        yield
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)
