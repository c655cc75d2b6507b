"""How a CPU's work is timed."""

from __future__ import annotations

import threading
import time

import pytest
import torch

from llmsim.real_engine.streams import ThreadStream, host_clock


def test_work_is_timed_by_the_clock_that_is_asked_in_its_own_thread() -> None:
    asked: list[str] = []

    def now_ns() -> int:
        asked.append(threading.current_thread().name)
        return 700 * len(asked)

    stream = ThreadStream(now_ns)
    finished = stream.send(lambda: torch.ones(2, dtype=torch.int64)).wait()
    stream.close()
    assert finished.duration_ns == 700
    assert asked == ["device_0", "device_0"]


def test_what_one_thread_computes_is_timed_while_it_has_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert host_clock() is time.thread_time_ns
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert host_clock() is time.perf_counter_ns
