"""The wall-clock driver, on a clock that only a fake executor moves: it does what the driver in virtual time does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import NoReturn

import pytest

from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.frontend import Frontend
from llmsim.policies.core.journal import JournalWriter, read_journal
from llmsim.policies.core.records import EventKind, Status
from llmsim.policies.core.replay import Replay
from llmsim.policies.core.request import Arrival, Output, Prompt, Request
from llmsim.policies.core.stall import StallError
from llmsim.real_engine.driver import WallClockDriver
from llmsim.sim.driver import SimDriver
from llmsim.sim.executor import SimExecutor
from llmsim.tests.support.driven_core import VLLM
from llmsim.tests.support.fake_executor import FakeClock, FakeExecutor
from llmsim.tests.support.toy_run import Rivals, Rows, ToyCost, ToyTraffic, assert_same

SGLANG = {"batching": {"name": "prefill_first"}, "preemption": {"name": "fewest_outputs"}}


def specs_of(seed: int) -> dict[str, dict[str, object]]:
    """One in three on a radix tree."""
    return VLLM | (SGLANG if seed % 3 == 0 else {})


def core_of(seed: int, depth: int | None = None) -> EngineCore:
    random = Random(seed)
    config = EngineConfig(
        num_blocks=random.choice((60, 200)),
        block_size=random.choice((4, 8)),
        depth=depth or random.choice((1, 2)),
        max_num_seqs=random.choice((3, 64)),
        prefix_index="radix_tree" if seed % 3 == 0 else "hashed_blocks",
    )
    return EngineCore(config, Policies.of(specs_of(seed)))


class Few:
    """So many requests of 20 prompt tokens and 4 output tokens, `every_ns` apart; none sets off another."""

    def __init__(self, count: int, every_ns: int = 0, patience_ns: int | None = None) -> None:
        self.count, self.every_ns, self.patience_ns = count, every_ns, patience_ns
        self.finished: list[str] = []

    def arrivals(self) -> Iterator[Arrival]:
        for i in range(self.count):
            time_ns = i * self.every_ns
            request = Request(f"r{i}", time_ns, Prompt([(i, 0, 20)]), 4, 1000 + i)
            yield Arrival(time_ns, request, Output(4), patience_ns=self.patience_ns)

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        self.finished.append(request_id)
        return ()


class Drawn(ToyTraffic):
    """Toy traffic whose draws do not hang on when a driver asks for the next arrival."""

    def __init__(self, seed: int, patience: tuple[int, ...] = ()) -> None:
        super().__init__(seed, 1, patience)
        self._seed = seed
        self._drawn = list(super().arrivals())

    def arrivals(self) -> Iterator[Arrival]:
        return iter(self._drawn)

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        self._random = Random(f"{self._seed}/{request_id}")
        return super().on_finish(request_id, now_ns)


def driven(core: EngineCore, workload: Few) -> tuple[WallClockDriver, FakeExecutor, FakeClock, Rows]:
    clock, rows = FakeClock(), Rows()
    executor = FakeExecutor(ToyCost(), clock)
    return WallClockDriver(core, executor, workload, rows, clock=clock), executor, clock, rows


@pytest.mark.parametrize("first", range(0, 120, 60))
def test_where_steps_take_as_long_every_row_is_that_of_the_driver_in_virtual_time(first: int) -> None:
    """Arrivals at and between boundaries, follow-ups, clients that give up, both depths and both prefix indexes."""
    num_aborted = 0
    for seed in range(first, first + 60):
        patience = (0, 40, 700, 4000, 100_000) if seed % 2 else ()
        frontend = Frontend(ingress_ns=seed % 2 * 7, egress_ns=3)
        sim_rows, real_rows, clock = Rows(), Rows(), FakeClock()
        sim = SimDriver(*(core_of(seed), SimExecutor(ToyCost()), Drawn(seed, patience), sim_rows), frontend=frontend)
        real = WallClockDriver(
            *(core_of(seed), FakeExecutor(ToyCost(), clock), Drawn(seed, patience), real_rows),
            clock=clock,
            frontend=frontend,
        )
        assert_same((sim_rows, sim.run()), (real_rows, real.run()), seed)
        real.core.check_integrity()
        num_aborted += sum(record.status is Status.ABORTED for record in real_rows.requests)
    assert num_aborted > 20


def test_with_two_plans_in_flight_the_next_is_launched_before_the_last_is_waited_for() -> None:
    driver, _, clock, _ = driven(core_of(1, depth=2), Few(1))
    driver.run()
    assert clock.log[:6] == ["launch 0", "launch 1", "wait 0", "launch 2", "wait 1", "launch 3"]


def test_with_one_plan_in_flight_each_is_waited_for_before_the_next() -> None:
    driver, _, clock, _ = driven(core_of(1, depth=1), Few(1))
    driver.run()
    assert clock.log[:4] == ["launch 0", "wait 0", "launch 1", "wait 1"]


def test_an_idle_engine_sleeps_once_until_the_next_arrival() -> None:
    driver, _, clock, rows = driven(core_of(1), Few(3, every_ns=1_000_000))
    driver.run()
    assert [entry for entry in clock.log if "sleep" in entry] == ["sleep until 1000000", "sleep until 2000000"]
    assert [record.first_scheduled_ns for record in rows.requests] == [0, 1_000_000, 2_000_000]


def test_a_run_does_not_wait_for_clients_whose_requests_have_ended() -> None:
    driver, _, clock, _ = driven(core_of(1), Few(2, patience_ns=10**12))
    assert driver.run() < 10**6
    assert not any("sleep" in entry for entry in clock.log)


def test_the_executor_hears_of_each_request_before_the_core_and_of_its_end() -> None:
    driver, executor, _, _ = driven(core_of(1), Few(3, every_ns=50))
    driver.run()
    assert executor.expected == ["r0", "r1", "r2"]
    assert sorted(executor.forgotten) == executor.expected


def test_tokens_are_told_before_the_end_of_their_request() -> None:
    workload, clock = Few(2), FakeClock()
    executor = FakeExecutor(ToyCost(), clock, tokens=True)
    told: list[tuple[str, int]] = []

    def tell(request_id: str, token: int) -> None:
        assert request_id not in workload.finished
        told.append((request_id, token))

    WallClockDriver(core_of(1), executor, workload, Rows(), clock=clock, on_token=tell).run()
    assert told == [("r0", 7), ("r1", 7)]


def test_a_journal_of_a_run_replays(tmp_path: Path) -> None:
    for seed in range(20):
        core, clock = core_of(seed), FakeClock()
        path = tmp_path / f"{seed}.gz"
        with JournalWriter(path, core.config, specs_of(seed), "test") as journal:
            executor, traffic = FakeExecutor(ToyCost(), clock), Drawn(seed, (700, 4000))
            WallClockDriver(core, executor, traffic, Rows(), clock=clock, journal=journal).run()
        replay = Replay(read_journal(path), str(path))
        assert replay.run() is None
        assert replay.num_plans == core.num_steps


def test_an_engine_that_can_admit_nobody_is_told_and_not_waited_for() -> None:
    config = EngineConfig(num_blocks=71, block_size=16, prefix_index="radix_tree")
    core = EngineCore(config, Policies.of(VLLM | SGLANG | {"chunk_size": {"name": "threshold", "tokens": 8}}))
    clock = FakeClock()
    driver = WallClockDriver(core, FakeExecutor(ToyCost(), clock), Rivals(), Rows(), clock=clock)
    with pytest.raises(StallError, match="2 requests wait, nothing runs, 70 blocks are free"):
        driver.run()


def interrupt() -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize("depth", [1, 2])
def test_ctrl_c_commits_the_steps_in_flight_and_ends_the_rest_unfinished(depth: int, tmp_path: Path) -> None:
    clock, rows, workload = FakeClock(), Rows(), Few(5, every_ns=100)
    core, executor = core_of(1, depth), FakeExecutor(ToyCost(), clock)
    left = [interrupt]
    executor.on_wait = lambda step: left.pop()() if step == 3 and left else None
    with JournalWriter(tmp_path / "j.gz", core.config, VLLM, "test") as journal:
        driver = WallClockDriver(core, executor, workload, rows, clock=clock, journal=journal)
        driver.run()
    assert driver.interrupted
    assert not core.sequences
    assert not core.in_flight
    core.check_integrity()
    assert len(rows.steps) == core.num_steps == 3 + depth
    statuses = [record.status for record in rows.requests]
    assert Status.UNFINISHED in statuses
    assert Status.ABORTED not in statuses
    assert workload.finished == [r.request_id for r in rows.requests if r.status is Status.FINISHED]
    ended = [event.reason for event in rows.events if event.kind is EventKind.ABORT]
    assert ended == ["interrupted"] * statuses.count(Status.UNFINISHED)
    assert Replay(read_journal(tmp_path / "j.gz")).run() is None


def test_ctrl_c_in_a_sleep_ends_the_run_at_once() -> None:
    driver, _, clock, rows = driven(core_of(1), Few(3, every_ns=10**9))
    clock.on_sleep = lambda: interrupt() if clock.time_ns > 10**9 else None
    end_ns = driver.run()
    assert driver.interrupted
    assert end_ns < 2 * 10**9
    assert [record.status for record in rows.requests] == [Status.FINISHED] * 2


def test_a_second_ctrl_c_is_raised() -> None:
    driver, executor, _, _ = driven(core_of(1), Few(3))
    executor.on_wait = lambda step: interrupt()
    with pytest.raises(KeyboardInterrupt):
        driver.run()


def test_a_run_that_is_stopped_when_all_have_ended_was_not_interrupted() -> None:
    driver, executor, _, rows = driven(core_of(1, depth=1), Few(1))
    executor.on_wait = lambda step: driver.stop() if step == 3 else None
    driver.run()
    assert not driver.interrupted
    assert [record.status for record in rows.requests] == [Status.FINISHED]
