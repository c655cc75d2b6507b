"""The executor that predicts: a plan becomes a step result and its cost; no tensor is touched."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from heapq import heappop, heappush
from itertools import chain, repeat
from operator import length_hint

from ..policies.core.estimator import StepCost, StepShape, StepTimeEstimator
from ..policies.core.plan import StepPlan, StepResult
from ..policies.core.request import Output, Request
from ..policies.core.sequence import Sequence
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

    Requests that generate all of `max_tokens` cost it nothing: the core ends them. The others it enters, when they
    join the decode batch, into a calendar by the batch's step numbers. `host_link` must be there where KV is swapped.
    """

    def __init__(self, cost_model: StepTimeEstimator, host_link: HostLink | None = None) -> None:
        self._cost_model = cost_model
        self._host_link = host_link
        self.shares = TimeShares()
        """What the device time of the steps so far rests on."""
        self._lengths: dict[str, int] = {}
        self._stops: dict[int, list[tuple[Sequence, int]]] = {}
        self._stop_numbers: list[int] = []

    def expect(self, request: Request, output: Output) -> None:
        """Learn what a request will really generate."""
        if output.length < request.max_tokens:
            self._lengths[request.id] = output.length

    def forget(self, request_id: str) -> None:
        """The request ended."""
        if self._lengths and self._lengths.pop(request_id, None) is not None and not self._lengths:
            self._stops.clear()
            self._stop_numbers.clear()

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
        if self._lengths and not is_empty:
            result.stopped = self._stopped(plan)
        return result, cost

    def costs_of_decodes(self, num_decodes: int, context_tokens: int, max_context: int) -> CostStream:
        """Predict step after step of nothing but these decodes, whose contexts grow by one each step.

        `context_tokens` (summed) and `max_context` are the first step's. To be closed: only then is it known which
        of the steps were carried out.
        """
        price_stretch = getattr(self._cost_model, "decode_stretch", None)
        if price_stretch is None:
            yield from self._costs_one_by_one(num_decodes, context_tokens, max_context)
            return
        for count in chain(FIRST_STRETCHES, repeat(FIRST_STRETCHES[-1])):
            costs = price_stretch(num_decodes, context_tokens, max_context, count)
            columns = [*costs[:4], costs.extrapolated]
            rows = iter(list(zip(*(column.tolist() for column in columns), strict=True)))
            try:
                yield from rows
            finally:
                if costs.share is not None:
                    self.shares.add_first(count - length_hint(rows), costs.device_ns, costs.share)
            context_tokens, max_context = context_tokens + count * num_decodes, max_context + count

    def _costs_one_by_one(self, num_decodes: int, context_tokens: int, max_context: int) -> Iterator[PlainCost]:
        while True:
            shape = StepShape((), num_decodes, context_tokens, max_context, num_decodes, 0)
            cost = self._cost_model.step_cost(shape)
            if cost.share is not None:
                self.shares.add(cost.device_ns, cost.share)
            yield cost[:5]
            context_tokens, max_context = context_tokens + num_decodes, max_context + 1

    def steps_to_stop(self, planned: int) -> int | None:
        """Steps of the decode batch after its step `planned` up to the first in which a request stops by itself."""
        while self._stop_numbers and self._stop_numbers[0] <= planned:
            heappop(self._stop_numbers)
        return self._stop_numbers[0] - planned if self._stop_numbers else None

    def _stopped(self, plan: StepPlan) -> list[str]:
        """Requests whose last token comes with this step."""
        stopped = []
        if plan.batch_number is not None:
            while self._stop_numbers and self._stop_numbers[0] < plan.batch_number:
                heappop(self._stop_numbers)
            for sequence, joined in self._stops.pop(plan.batch_number, ()):
                if sequence.in_batch and sequence.joined == joined:
                    stopped.append(sequence.id)
        for row in plan.rows:
            if row.samples:
                sequence = row.sequence
                left = self._left(sequence)
                if left == 0:
                    stopped.append(sequence.id)
                elif left is not None and sequence.in_batch:
                    self._enter(sequence.joined + left, sequence)
        return stopped

    def _enter(self, number: int, sequence: Sequence) -> None:
        """Note that a sequence which has just joined stops with the batch's step `number`."""
        if number not in self._stops:
            self._stops[number] = []
            heappush(self._stop_numbers, number)
        self._stops[number].append((sequence, sequence.joined))

    def _left(self, sequence: Sequence) -> int | None:
        """Tokens that it will still generate after those planned; None: as many as `max_tokens` lets it."""
        length = self._lengths.get(sequence.id)
        if length is None:
            return None
        return length - (sequence.num_tokens + sequence.in_flight - sequence.prompt_tokens)
