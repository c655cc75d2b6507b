"""Time at a processor's best speed: what slows everything down does not count, and looking takes no time."""

from __future__ import annotations

import pytest

from llmsim.real_engine.steady_clock import EVERY_NS, FIRST, RECENT, ProcessorSpeed, SteadyClock, processor_speed


class Machine:
    """A processor that others slow down; its thread's time goes on as it works."""

    def __init__(self) -> None:
        self.slowness = 1.0
        self.now_ns = 123_456
        self.num_looks = 0

    def look(self) -> tuple[float, float]:
        self.num_looks += 1
        times = 300_000 * self.slowness, 200_000 * self.slowness
        self.now_ns += round(sum(times))
        return times

    def work(self, units: int) -> None:
        self.now_ns += round(units * self.slowness)


def timed(clock: SteadyClock, machine: Machine, units: int) -> int:
    clock.look()
    begun = clock()
    machine.work(units)
    return clock() - begun


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def clock(machine: Machine) -> SteadyClock:
    return SteadyClock(ProcessorSpeed(machine.look), lambda: machine.now_ns)


def test_at_best_it_is_the_threads_time(clock: SteadyClock, machine: Machine) -> None:
    assert [timed(clock, machine, 20_000_000) for _ in range(50)] == [20_000_000] * 50


@pytest.mark.parametrize("slowness", [1.1, 1.9])
def test_work_that_others_slow_down_counts_as_if_they_did_not(
    clock: SteadyClock, machine: Machine, slowness: float
) -> None:
    timed(clock, machine, 20_000_000)
    machine.slowness = slowness
    times = [timed(clock, machine, 20_000_000) for _ in range(30)]
    assert times[0] == pytest.approx(20_000_000 * slowness, rel=1e-6)  # the median of the last looks is not there yet
    assert times[RECENT:] == pytest.approx([20_000_000] * (30 - RECENT), rel=1e-6)
    machine.slowness = 1.0
    assert [timed(clock, machine, 20_000_000) for _ in range(30)][-1] == pytest.approx(20_000_000, rel=1e-6)


def test_it_never_goes_back_and_looking_takes_none_of_its_time(clock: SteadyClock, machine: Machine) -> None:
    last = clock()
    for i in range(100):
        machine.slowness = 1 + i % 5
        before = clock()
        clock.look()
        assert clock() == before >= last
        machine.work(3_000_000)
        last = clock()


def test_short_pieces_of_work_share_a_look(clock: SteadyClock, machine: Machine) -> None:
    for _ in range(80):
        timed(clock, machine, EVERY_NS // 8)
    assert FIRST + 5 <= machine.num_looks <= FIRST + 15


def test_the_processor_of_this_machine_has_a_speed() -> None:
    assert processor_speed() is processor_speed()
    assert 0.05 < processor_speed().now() < 2
