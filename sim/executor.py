"""The executor that predicts: a plan becomes a step result and its cost; no tensor is touched."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import chain, repeat
from operator import length_hint

from ..policies.core.estimator import StepCost, StepShape, StepTimeEstimator
from ..policies.core.plan import StepPlan, StepResult
from ..policies.core.request import Output, Request
from ..policies.core.stop_calendar import StopCalendar
from .cost_model.host_link import HostLink
from .cost_model.shares import TimeShares

NO_COST = StepCost(0, 0, 0, 0)
FIRST_STRETCHES = (16, 64, 512)
"""Steps that are priced together where the cost model can: few at first, since many a stretch is short."""
PlainCost = tuple[int, int, int, int, bool]
"""The fields of a StepCost, but what they rest on."""
CostStream = Generator[PlainCost, None, None]


class SimExecutor:
    """Prices steps with a cost model and knows when each request will stop by itself.

    `host_link` must be there where KV is swapped.
    """

    def __init__(self, cost_model: StepTimeEstimator, host_link: HostLink | None = None) -> None:
        self._cost_model = cost_model
        self._host_link = host_link
        self.shares = TimeShares()
        """What the device time of the steps so far rests on."""
        self._stops = StopCalendar()

    def expect(self, request: Request, output: Output) -> None:
        """Learn what a request will really generate."""
        self._stops.expect(request.id, request.max_tokens, output)

    def forget(self, request_id: str) -> None:
        """The request ended."""
        self._stops.forget(request_id)

    def execute(self, plan: StepPlan) -> tuple[StepResult, StepCost]:
        """Predict a step. To be called right after it was planned.

        An empty plan costs nothing but its copies: the engine only waits for what is in flight.
        """
        is_empty = not plan.rows and not plan.num_decodes
        cost = NO_COST if is_empty else self._cost_model.step_cost(plan.shape())
        if cost.share is not None:
            self.shares.add(cost.device_ns, cost.share)
        if plan.swaps:
            assert self._host_link is not None, "KV is swapped without a link to the host"
            cost = cost._replace(device_ns=cost.device_ns + self._host_link.copy_ns(plan.num_blocks_copied))
        result = StepResult(cost.device_ns)
        if self._stops.lengths and not is_empty:
            result.stopped = self._stops.stopped(plan)
        return result, cost

    def costs_of_decodes(
        self, num_decodes: int, context_tokens: int, max_context: int, shared_tokens: int
    ) -> CostStream:
        """Predict step after step of nothing but these decodes, whose contexts grow by one each step.

        `context_tokens` (summed) and `max_context` are the first step's; what they share stays. To be closed: only
        then is it known which of the steps were carried out.
        """
        price_stretch = getattr(self._cost_model, "decode_stretch", None)
        if price_stretch is None:
            yield from self._costs_one_by_one(num_decodes, context_tokens, max_context, shared_tokens)
            return
        for count in chain(FIRST_STRETCHES, repeat(FIRST_STRETCHES[-1])):
            costs = price_stretch(num_decodes, context_tokens, max_context, count, shared_tokens)
            columns = [*costs[:4], costs.extrapolated]
            rows = iter(list(zip(*(column.tolist() for column in columns), strict=True)))
            try:
                yield from rows
            finally:
                if costs.share is not None:
                    self.shares.add_first(count - length_hint(rows), costs.device_ns, costs.share)
            context_tokens, max_context = context_tokens + count * num_decodes, max_context + count

    def _costs_one_by_one(
        self, num_decodes: int, context_tokens: int, max_context: int, shared_tokens: int
    ) -> Iterator[PlainCost]:
        while True:
            shape = StepShape((), num_decodes, context_tokens, max_context, num_decodes, shared_tokens=shared_tokens)
            cost = self._cost_model.step_cost(shape)
            if cost.share is not None:
                self.shares.add(cost.device_ns, cost.share)
            yield cost[:5]
            context_tokens, max_context = context_tokens + num_decodes, max_context + 1

    def steps_to_stop(self, planned: int) -> int | None:
        """Steps of the decode batch after its step `planned` up to the first in which a request stops by itself."""
        return self._stops.steps_to_stop(planned)
