"""The largest chunk with which a step is predicted to hold a target for the time between tokens."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.estimator import StepShape, StepTimeEstimator
from ..core.outlook import Prefill
from ..protocols import EngineView
from ..registry import register

GRAIN_TOKENS = 16
"""Chunks are sized in steps of so many tokens: a block, as vLLM has it."""


@register("chunk_size", "itl_target")
class ItlTarget:
    """As much prefill as a step may hold without lasting longer than `itl_s`; all of it where nobody decodes.

    `least_tokens` are given in any case, so that prompts get on where the decodes alone take as long: then, and where
    decodes wait for memory, the target is missed. What a step takes is asked of the cost model, by bisection.
    """

    requires = ("chunked_prefill", "mixed_steps", "step_time")

    def __init__(self, itl_s: float, least_tokens: int = GRAIN_TOKENS) -> None:
        if itl_s <= 0:
            raise ValueError(f"itl_s: {itl_s} is out of range; above 0")
        if least_tokens < 1:
            raise ValueError(f"least_tokens: {least_tokens} is out of range; at least 1")
        self._target_ns = round(itl_s * 1e9)
        self._least = least_tokens
        self._estimator: StepTimeEstimator | None = None

    def use_estimator(self, estimator: StepTimeEstimator) -> None:
        """What to ask how long a step takes; given once, before the first step."""
        self._estimator = estimator

    def step_tokens(self, view: EngineView) -> int | None:
        """The most that fits, a multiple of the grain beyond the least."""
        outlook = view.outlook
        decodes = outlook.decodes()
        if not decodes.num_decodes:
            return None
        work, total = _first(outlook.prefills(), view.max_num_batched_tokens - decodes.num_decodes)
        if total <= self._least or self._fits(decodes, work, total, outlook.depth):
            return max(total, self._least)
        low, high = 0, (total - self._least) // GRAIN_TOKENS + 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._fits(decodes, work, self._least + middle * GRAIN_TOKENS, outlook.depth):
                low = middle
            else:
                high = middle
        return self._least + low * GRAIN_TOKENS

    def request_tokens(self, view: EngineView) -> int | None:
        """No limit."""
        return None

    def _fits(self, decodes: StepShape, work: list[Prefill], num_tokens: int, depth: int) -> bool:
        """Whether the decodes with so many tokens of the work are done in time."""
        assert self._estimator is not None, "use_estimator comes first"
        chunks = []
        for wanted, before in work:
            if num_tokens > 0:
                chunks.append((min(wanted, num_tokens), before))
                num_tokens -= wanted
        rows, is_cut = decodes.num_samples + len(chunks), num_tokens < 0
        shape = decodes._replace(prefill_chunks=chunks, num_samples=rows, num_unfinished=int(is_cut))
        cost = self._estimator.step_cost(shape)
        step_ns = max(cost.device_ns, cost.host_ns) if depth > 1 else cost.device_ns + cost.host_ns
        return step_ns <= self._target_ns


def _first(prefills: Iterable[Prefill], most: int) -> tuple[list[Prefill], int]:
    """The first of them that make up `most` tokens, and how many of these there are."""
    work, total = [], 0
    for prefill in prefills:
        if total >= most:
            break
        work.append(prefill)
        total += prefill.num_tokens
    return work, min(total, most)
