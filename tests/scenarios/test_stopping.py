"""The first Ctrl-C asks a run to stop, the second ends it."""

from __future__ import annotations

import os
import signal
import threading
from threading import Thread, Timer

import pytest

from llmsim.real_engine.wall_clock import WallClock
from llmsim.scenarios.stopping import stopped_by_signals

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="sends signals"),
    pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="not the main thread"),
]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_stops_and_the_second_is_raised(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    stops: list[bool] = []
    with stopped_by_signals(lambda: stops.append(True)):
        signal.raise_signal(number)
        assert stops == [True]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert stops == [True]
    assert signal.getsignal(number) is before


def test_a_signal_wakes_a_sleeping_clock() -> None:
    clock = WallClock()
    with stopped_by_signals(clock.wake):
        timer = Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        clock.sleep_until(120 * 10**9)
        timer.join()
    assert clock.now_ns() < 60 * 10**9


def test_a_thread_wakes_a_sleeping_clock_and_a_wake_before_the_sleep_counts() -> None:
    clock = WallClock()
    timer = Timer(0.05, clock.wake)
    timer.start()
    clock.sleep_until(120 * 10**9)
    clock.wake()
    clock.sleep_until(120 * 10**9)
    timer.join()
    assert clock.now_ns() < 60 * 10**9


def test_a_clock_sleeps_until_it_is_time() -> None:
    clock = WallClock()
    due = clock.now_ns() + 20_000_000
    clock.sleep_until(due)
    assert clock.now_ns() >= due - 1_000_000
    clock.sleep_until(0)


def test_outside_the_main_thread_nothing_changes() -> None:
    seen = []

    def body() -> None:
        with stopped_by_signals(lambda: None):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = Thread(target=body)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
