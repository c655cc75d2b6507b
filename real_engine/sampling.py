"""Requests whose tokens are drawn: the driver knows of an output's length, not of how its tokens are chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..policies.core.plan import StepPlan
from ..policies.core.request import Output, Request
from .contract import Ticket
from .sampling_params import SamplingParams


class SamplingExecutor(Protocol):
    """An executor that can be told how tokens are chosen."""

    def expect(self, request: Request, output: Output, sampling: SamplingParams) -> None:
        """Learn of a request."""
        ...

    def forget(self, request_id: str) -> None:
        """The request ended."""
        ...

    def launch(self, plan: StepPlan) -> Ticket:
        """Send a step on its way."""
        ...

    def close(self) -> None:
        """Free the device's memory."""
        ...


class Sampled:
    """An executor as drivers want it: `params_of` says how a request's tokens are chosen."""

    def __init__(self, executor: SamplingExecutor, params_of: Callable[[Request], SamplingParams]) -> None:
        self._executor = executor
        self._params_of = params_of
        self.forget = executor.forget
        self.launch = executor.launch
        self.close = executor.close

    def expect(self, request: Request, output: Output) -> None:
        """Learn of a request."""
        self._executor.expect(request, output, self._params_of(request))
