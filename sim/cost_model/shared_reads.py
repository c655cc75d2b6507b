"""What decodes save that have context in the same KV blocks: what was read may still be in a cache of the device.

    attention = time(context) - alpha (time(context) - time(context - again))

`again` are the tokens that were read before in the step: of each block all readers but one. One context at least is
read for the first time. The floor of bytes sees no more than what is left: `context - alpha x again`.
"""

from __future__ import annotations

from ...policies.core.estimator import StepCost, StepShape
from .analytic import AnalyticCostModel


class SharedReads:
    """The saving of one profile, by its `alpha` (`shared_contexts`)."""

    def __init__(self, alpha: float, floors: AnalyticCostModel) -> None:
        self.alpha = alpha
        self._floors = floors

    def again(self, shared: int, context: int, longest: int) -> int:
        """Tokens of context that cost less; 0 where nothing was measured to be saved."""
        return min(shared, context - longest) if self.alpha else 0

    def num_saved(self, again: int) -> int:
        """As many tokens are not read from memory."""
        return round(self.alpha * again)

    def under(self, floor: StepCost, shape: StepShape, again: int) -> StepCost:
        """A step's floor without the bytes that a cache holds."""
        context = shape.decode_context_tokens - self.num_saved(again)
        read = self._floors.step_cost(shape._replace(decode_context_tokens=context))
        return floor._replace(memory_ns=read.memory_ns)
