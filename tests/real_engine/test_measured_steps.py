"""Steps that a device carries out, driven in virtual time."""

from __future__ import annotations

from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.real_engine.measured_steps import MeasuredSteps
from llmsim.sim.driver import SimDriver
from llmsim.sim.executor import SimExecutor
from llmsim.tests.support.driven_core import VLLM
from llmsim.tests.support.fake_executor import FakeClock, FakeExecutor
from llmsim.tests.support.toy_run import Rows, ToyCost, ToyTraffic, assert_same


def test_a_run_of_measured_steps_is_the_run_that_predicts_the_same_times() -> None:
    for seed in range(10):
        runs = []
        for is_measured in (False, True):
            core = EngineCore(EngineConfig(num_blocks=60, depth=1 + seed % 2), Policies.of(VLLM))
            clock, rows = FakeClock(), Rows()
            real = MeasuredSteps(FakeExecutor(ToyCost(), clock), clock.now_ns)
            executor = real if is_measured else SimExecutor(ToyCost())
            runs.append((rows, SimDriver(core, executor, ToyTraffic(seed, 1), rows, leaps=False).run()))
        assert_same(*runs, seed)


def test_each_step_is_waited_for_when_it_is_planned() -> None:
    core = EngineCore(EngineConfig(num_blocks=60, depth=2), Policies.of(VLLM))
    clock = FakeClock()
    executor = MeasuredSteps(FakeExecutor(ToyCost(), clock), clock.now_ns)
    SimDriver(core, executor, ToyTraffic(1, 1), Rows(), leaps=False).run()
    assert clock.log[:4] == ["launch 0", "wait 0", "launch 1", "wait 1"]
