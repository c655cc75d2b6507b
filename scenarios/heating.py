"""A few made-up requests before a run on the real engine: what is done for the first time is not what is measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..policies.core.engine import EngineCore
from ..policies.core.request import Arrival, Output, Prompt, Request
from ..real_engine.contract import Executor
from ..real_engine.measured_steps import MeasuredSteps
from ..sim.driver import SimDriver
from .unrecorded import Unrecorded

LENGTHS = ((40, 4), (17, 3), (1, 2))
"""Prompt and output tokens of each: chunks, decodes, and steps with both."""
FIRST_CONTENT = -(1 << 62)
"""Below all that workloads name (`content_ids`)."""


class _Few:
    def arrivals(self) -> Iterator[Arrival]:
        """All at once."""
        for index, (prompt, output) in enumerate(LENGTHS):
            content = FIRST_CONTENT - 2 * index
            spans = Prompt([(content, 0, prompt)])
            request = Request(f"heating-{index}", 0, spans, output, content - 1, predicted_tokens=output)
            yield Arrival(0, request, Output(output))

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """Nothing follows."""
        return ()


def heat_up(core: EngineCore, executor: Executor) -> None:
    """Let kernels compile and libraries load. `core` is one of its own, not to be used again.

    Its blocks are forgotten with it: the run begins with an empty cache. An engine too small for these requests refuses
    them.
    """
    SimDriver(core, MeasuredSteps(executor), _Few(), Unrecorded(), leaps=False).run()
