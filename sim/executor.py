"""The executor that predicts: a plan becomes a step result and its cost; no tensor is touched."""

from __future__ import annotations

from ..policies.core.estimator import StepCost, StepTimeEstimator
from ..policies.core.plan import StepPlan, StepResult
from ..policies.core.request import Output
from ..policies.core.sequence import Sequence

NO_COST = StepCost(0, 0, 0, 0)


class SimExecutor:
    """Prices steps with a cost model and knows when each request will stop by itself.

    Requests that generate all of `max_tokens` cost it nothing: the core ends them. The others it enters, when they
    join the decode batch, into a calendar by the batch's step numbers.
    """

    def __init__(self, cost_model: StepTimeEstimator) -> None:
        self._cost_model = cost_model
        self._lengths: dict[str, int] = {}
        self._stops: dict[int, list[tuple[Sequence, int]]] = {}

    def expect(self, request_id: str, max_tokens: int, output: Output) -> None:
        """Learn what a request will really generate."""
        if output.length < max_tokens:
            self._lengths[request_id] = output.length

    def forget(self, request_id: str) -> None:
        """The request ended."""
        self._lengths.pop(request_id, None)

    def execute(self, plan: StepPlan) -> tuple[StepResult, StepCost]:
        """Predict a step. To be called right after it was planned."""
        if not plan.rows and not plan.num_decodes:
            return StepResult(0), NO_COST
        cost = self._cost_model.step_cost(plan.shape())
        result = StepResult(cost.device_ns)
        if self._lengths:
            result.stopped = self._stopped(plan)
        return result, cost

    def _stopped(self, plan: StepPlan) -> list[str]:
        """Requests whose last token comes with this step."""
        stopped = []
        if plan.batch_number is not None:
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
                    self._stops.setdefault(sequence.joined + left, []).append((sequence, sequence.joined))
        return stopped

    def _left(self, sequence: Sequence) -> int | None:
        """Tokens that it will still generate after those planned; None: as many as `max_tokens` lets it."""
        length = self._lengths.get(sequence.id)
        if length is None:
            return None
        return length - (sequence.num_tokens + sequence.in_flight - sequence.prompt_tokens)
