"""A cost model that can be checked in the head."""

from __future__ import annotations

from llmsim.policies.core.estimator import StepCost, StepShape


class LinearEstimator:
    """A step takes 100 ns, 10 for each token and 1 for each token of context that is read; the host 30 a request."""

    def __init__(self) -> None:
        self.num_asked = 0

    def step_cost(self, shape: StepShape) -> StepCost:
        self.num_asked += 1
        tokens = sum(q for q, _ in shape.prefill_chunks) + shape.num_decodes + shape.num_drafts
        context = sum(q + kv for q, kv in shape.prefill_chunks) + shape.decode_context_tokens
        requests = len(shape.prefill_chunks) + shape.num_decodes
        return StepCost(100 + 10 * tokens + context, 30 * requests, 0, 0)
