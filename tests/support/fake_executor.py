"""An executor without a device, and the clock that its steps move: real-time driving as a matter of arithmetic."""

from __future__ import annotations

from collections.abc import Callable

from llmsim.policies.core.estimator import StepTimeEstimator
from llmsim.policies.core.plan import StepPlan
from llmsim.policies.core.request import Output, Request
from llmsim.real_engine.contract import StepDone
from llmsim.sim.executor import SimExecutor


class FakeClock:
    """Time passes where a step is launched, waited for, or slept through, and nowhere else."""

    def __init__(self, log: list[str] | None = None) -> None:
        self.time_ns = 0
        self.log = [] if log is None else log
        self.on_sleep: Callable[[], None] | None = None

    def now_ns(self) -> int:
        return self.time_ns

    def sleep_until(self, due_ns: int) -> None:
        assert due_ns > self.time_ns, f"a sleep of {due_ns - self.time_ns} ns at {self.time_ns}"
        self.log.append(f"sleep until {due_ns}")
        if self.on_sleep is not None:
            self.on_sleep()
        self.time_ns = due_ns

    def wake(self) -> None:
        self.log.append("wake")


class FakeExecutor:
    """Takes the host and the device as long as the cost model says, on a fake clock."""

    def __init__(self, cost_model: StepTimeEstimator, clock: FakeClock, tokens: bool = False) -> None:
        self.clock = clock
        self.expected: list[str] = []
        self.forgotten: list[str] = []
        self.on_wait: Callable[[int], None] | None = None
        self._predicting = SimExecutor(cost_model)
        self._device_free_ns = 0
        self._tokens = tokens

    def expect(self, request: Request, output: Output) -> None:
        self.expected.append(request.id)
        self._predicting.expect(request, output)

    def forget(self, request_id: str) -> None:
        self.forgotten.append(request_id)
        self._predicting.forget(request_id)

    def launch(self, plan: StepPlan) -> FakeTicket:
        self.clock.log.append(f"launch {plan.step}")
        result, cost = self._predicting.execute(plan)
        self.clock.time_ns += cost.host_ns
        self._device_free_ns = max(self.clock.time_ns, self._device_free_ns) + cost.device_ns
        tokens = {row.sequence.id: [7] for row in plan.rows if row.samples} if self._tokens else {}
        return FakeTicket(self, plan.step, StepDone(result, cost, tokens), self._device_free_ns)

    def close(self) -> None:
        self.clock.log.append("close")


class FakeTicket:
    """A step on its way."""

    def __init__(self, executor: FakeExecutor, step: int, done: StepDone, end_ns: int) -> None:
        self._executor, self._step, self._done, self._end_ns = executor, step, done, end_ns

    def wait(self) -> StepDone:
        clock = self._executor.clock
        clock.log.append(f"wait {self._step}")
        if self._executor.on_wait is not None:
            self._executor.on_wait(self._step)
        clock.time_ns = max(clock.time_ns, self._end_ns)
        return self._done
