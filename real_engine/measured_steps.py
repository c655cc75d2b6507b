"""Steps measured on a device in virtual time: each is carried out when it is planned, and lasts as long as it took."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..policies.core.estimator import StepCost
from ..policies.core.plan import StepPlan, StepResult
from ..policies.core.request import Output, Request
from .contract import Executor


class MeasuredSteps:
    """An executor as the driver in virtual time wants it: what lies between two steps passes in no time."""

    def __init__(self, executor: Executor, now_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._executor = executor
        self._now_ns = now_ns

    def expect(self, request: Request, output: Output) -> None:
        """Learn of a request."""
        self._executor.expect(request, output)

    def forget(self, request_id: str) -> None:
        """The request ended."""
        self._executor.forget(request_id)

    def execute(self, plan: StepPlan) -> tuple[StepResult, StepCost]:
        """Carry a step out and measure it; host time is that of the launch. Raises StepFailed."""
        begin_ns = self._now_ns()
        ticket = self._executor.launch(plan)
        host_ns = self._now_ns() - begin_ns
        done = ticket.wait()
        return done.result, done.cost._replace(host_ns=host_ns)
