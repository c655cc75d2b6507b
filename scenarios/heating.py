"""A few made-up requests before a run on the real engine: what is done for the first time is not what is measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..policies.core.config import EngineConfig
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
APART_NS = 10**15
"""In virtual time, so that each has steps of its own."""


class _Few:
    def __init__(self, alone: Iterable[int]) -> None:
        self._alone = alone

    def arrivals(self) -> Iterator[Arrival]:
        """Some at once, then prompts of these lengths one by one."""
        for index, (prompt, output) in enumerate(LENGTHS):
            yield _arrival(index, 0, prompt, output)
        for index, prompt in enumerate(self._alone, len(LENGTHS)):
            yield _arrival(index, index * APART_NS, prompt, 1)

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """Nothing follows."""
        return ()


def _arrival(index: int, time_ns: int, prompt: int, output: int) -> Arrival:
    content = FIRST_CONTENT - 2 * index
    spans = Prompt([(content, 0, prompt)])
    request = Request(f"heating-{index}", time_ns, spans, output, content - 1, predicted_tokens=output)
    return Arrival(time_ns, request, Output(output))


def heat_up(core: EngineCore, executor: Executor, *, compiles: bool = False) -> None:
    """Let kernels compile and libraries load. `core` is one of its own, not to be used again.

    Where the device `compiles` what it runs, chunks of all sizes are served, up to the longest that a step may hold,
    which also takes the memory that such a step takes.
    Its blocks are forgotten with it: the run begins with an empty cache. An engine too small for these requests refuses
    them.
    """
    alone = chunks_up_to(_longest(core.config)) if compiles else ()
    SimDriver(core, MeasuredSteps(executor), _Few(alone), Unrecorded(), leaps=False).run()


def chunks_up_to(longest: int) -> list[int]:
    """Powers of two and the longest: attention has tiles for each, and libraries kernels of their own, which are loaded
    when they are first needed."""
    powers = [1 << i for i in range(1, longest.bit_length())]
    return [size for size in powers if size < longest] + [longest]


def _longest(config: EngineConfig) -> int:
    """The longest prompt that an empty engine serves in one step; half of the memory, so that it is sure to."""
    memory = (config.num_blocks - 1) * config.block_size
    return max(1, min(config.max_num_batched_tokens, config.max_model_len - 1, memory // 2))
