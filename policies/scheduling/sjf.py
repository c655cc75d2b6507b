"""The job that is predicted to be the shortest first."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register


def predicted_length(sequence: Sequence) -> tuple[int, int, int]:
    """Smaller is sooner: predicted output tokens, then arrival, then the order in which the engine saw them."""
    request = sequence.request
    assert request.predicted_tokens is not None, f"no prediction for {request.id}"
    return request.predicted_tokens, request.arrival_ns, sequence.order


@register("scheduling", "sjf")
class Sjf:
    """Shorter predicted outputs first, equal ones in order of arrival; as good as the scenario's prediction.

    An output's tokens come one a step, so they are the job's length (as in Fu et al., Efficient LLM Scheduling by
    Learning to Rank, NeurIPS 2024). Long ones may starve.
    """

    requires = ("prediction",)

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """In its place."""
        queue.insert_by(sequence, predicted_length)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """Nothing to do: the queue is kept in order."""
