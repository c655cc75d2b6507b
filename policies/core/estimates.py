"""What policies asked of a cost model, heard while a run is journalled and foretold when the journal is replayed.

Estimates are input to a core as the time is: a replay has no cost model, and must not need one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .estimator import StepCost, StepShape, StepTimeEstimator

Answer = tuple[int, int]
"""Device and host time in ns."""


class HeardEstimator:
    """Passes questions on and remembers the answers until they are taken."""

    def __init__(self, estimator: StepTimeEstimator) -> None:
        self._estimator = estimator
        self._answers: list[Answer] = []

    def step_cost(self, shape: StepShape) -> StepCost:
        """What the estimator says."""
        cost = self._estimator.step_cost(shape)
        self._answers.append((cost.device_ns, cost.host_ns))
        return cost

    def take(self) -> list[Answer]:
        """The answers since the last call."""
        answers, self._answers = self._answers, []
        return answers


class ForetoldEstimator:
    """Answers as was heard, in order; without what nobody asks of a policy's estimate."""

    def __init__(self) -> None:
        self._answers: deque[Answer] = deque()
        self.num_missing = 0
        """Questions of the step to which no answer was heard."""

    def foretell(self, answers: Iterable[Answer]) -> None:
        """The answers of the next step."""
        self._answers = deque(answers)
        self.num_missing = 0

    def step_cost(self, shape: StepShape) -> StepCost:
        """The next answer."""
        if not self._answers:
            self.num_missing += 1
            return StepCost(0, 0, 0, 0)
        return StepCost(*self._answers.popleft(), 0, 0)
