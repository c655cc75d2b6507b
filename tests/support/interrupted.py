"""The plain scheduler with requests that end early: aborted from outside, or stopped by a token of theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .plain_request import PlainRequest, PlainStep
from .plain_scheduler import PlainScheduler


class InterruptedScheduler(PlainScheduler):
    """`stops`: outputs after which a request ends by itself, though `max_tokens` would let it go on."""

    def __init__(self, config: dict[str, Any], stops: Mapping[str, int]) -> None:
        super().__init__(config, Counter())
        self.stops = stops

    def abort(self, request: PlainRequest) -> None:
        """End a request wherever it stands; what plans in flight hold for it is lost."""
        if request.status == "finished":
            return
        (self.running if request in self.running else self.waiting).remove(request)
        self._finish(request)

    def _process(self, step: PlainStep, request: PlainRequest, num_tokens: int) -> None:
        if request.status == "finished":
            return
        super()._process(step, request, num_tokens)
        if request.status != "finished" and request.num_outputs >= self.stops.get(request.id, len(request.outputs)):
            self._finish(request)

    def update(self, step: PlainStep) -> list[PlainRequest]:
        """Process a step's outputs; those that had ended before are not told again."""
        before = {request for request in step.scheduled if request.status == "finished"}
        return [request for request in super().update(step) if request not in before]
