"""Time-weighted figures agree with plain integration, whatever the chunks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmsim.policies.core.records import StepRecord
from llmsim.sim.columns import StepColumns
from llmsim.sim.fragmentation import FragmentationFold, KVLayout
from llmsim.sim.overload import QueueFold
from llmsim.sim.step_fold import StepFold
from llmsim.sim.window import Window
from llmsim.tests.support.synthetic import step

Row = tuple[int, int, int, int, int, int]
"""Pause since the last start, duration, running, waiting, free, host."""
STEPS = st.lists(st.tuples(*(st.integers(0, most) for most in (30, 20, 9, 9, 10, 8))), max_size=30)


def steps_of(rows: list[Row]) -> list[StepRecord]:
    """Steps that start and end in order; they may overlap."""
    records, start, last_end = [], 0, 0
    for i, (pause, duration, running, waiting, free, host) in enumerate(rows):
        start += pause
        last_end = max(last_end, start + duration)
        counts = {"num_running": running, "num_waiting": waiting, "free_blocks": free, "host_ns": min(host, start)}
        records.append(step(i, start, last_end - start, **counts))
    return records


def fold(records: list[StepRecord], window: Window, chunk: int = 1000) -> StepFold:
    result = StepFold(window, 10, QueueFold(window), FragmentationFold(window, 10, KVLayout()))
    for i in range(0, len(records), chunk):
        result.add(StepColumns.of_records(records[i : i + chunk]))
    result.close()
    return result


def tick_by_tick(records: list[StepRecord], window: Window) -> list[tuple[int, int, int, bool]]:
    """`(running, waiting, used, busy)` in each unit of time of the window, looked up the slow way."""
    result = []
    for t in range(window.start_ns, window.end_ns):
        begun = [r for r in records if r.start_ns <= t]
        under_way = [r for r in begun if r.start_ns + r.duration_ns > t]
        coming = records[len(begun)] if len(begun) < len(records) else None
        if not under_way and coming is not None and coming.start_ns - coming.host_ns <= t:
            holds = coming  # it is being planned
        elif begun:
            holds = begun[-1]
        else:
            result.append((0, 0, 0, False))
            continue
        idle = not under_way and holds is not coming
        used = 10 - holds.free_blocks
        if idle:
            result.append((0, holds.num_waiting, used if holds.num_waiting else 0, False))
        else:
            result.append((holds.num_running, holds.num_waiting, used, bool(under_way)))
    return result


@given(STEPS, st.integers(0, 40), st.integers(4, 200))
def test_levels_agree_with_a_clock_that_ticks(rows: list[Row], start: int, length: int) -> None:
    records, window = steps_of(rows), Window(start, start + length)
    got, ticks = fold(records, window), tick_by_tick(records, window)
    for level, values in zip((got.running, got.waiting, got.used_blocks), zip(*ticks, strict=True), strict=False):
        assert level.integral_ns == sum(values)
        assert level.largest == max(values)
    assert got.busy_ns == sum(tick[3] for tick in ticks)


@given(STEPS, st.integers(1, 7))
def test_chunks_do_not_matter(rows: list[Row], chunk: int) -> None:
    records, window = steps_of(rows), Window(3, 150)
    whole, parts = fold(records, window), fold(records, window, chunk)
    for name in ("running", "waiting", "used_blocks"):
        assert vars(getattr(whole, name)) == vars(getattr(parts, name))
    assert (whole.busy_ns, whole.num_steps) == (parts.busy_ns, parts.num_steps)
    assert whole.compute_ns == pytest.approx(parts.compute_ns)
    one, other = whole.queue.trend(), parts.queue.trend()
    assert one is not None
    assert other is not None
    assert one.slope_per_s * one.window_s == pytest.approx(other.slope_per_s * other.window_s, abs=1e-9)
    assert one[1:] == pytest.approx(other[1:])


def test_work_counts_as_far_as_its_step_lies_inside() -> None:
    records = [step(0, 0, 100, compute_ns=40, memory_ns=80), step(1, 100, 100, compute_ns=10, memory_ns=20)]
    got = fold(records, Window(50, 150))
    assert (got.compute_ns, got.memory_ns, got.busy_ns) == (25.0, 50.0, 100)


def test_slope_is_that_of_the_least_squares_line() -> None:
    rng = np.random.default_rng(0)
    second = 1_000_000_000
    waiting = rng.integers(0, 50, 200) + np.arange(200)
    records = [step(i, i * second, second, num_waiting=int(w)) for i, w in enumerate(waiting)]
    trend = fold(records, Window(0, 200 * second)).queue.trend()
    assert trend is not None
    fine = np.arange(200 * 50) / 50 + 0.01
    assert trend.slope_per_s == pytest.approx(np.polyfit(fine, np.repeat(waiting, 50), 1)[0], rel=1e-3)
    assert trend.first_quarter_mean == pytest.approx(waiting[:50].mean())
    assert trend.last_quarter_min == waiting[150:].min()
