"""What a fit needs of a trace: when requests come, how long they are, which blocks of earlier prompts they reuse."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from ...policies.core.request import Content, Prompt
from ..errors import ScenarioError
from ..paths import path_given
from ..schema import Scenario
from ..schema_workload import SESSION_FORMATS, TraceSettings
from ..traces.formats import block_tokens_of
from ..workloads.building import play_trace
from ..workloads.recency import Recency, Reuse
from ..workloads.reuse_rows import ReuseRow

_WITHOUT_END = 10**15


@dataclass(frozen=True, slots=True)
class Sample:
    """The requests of a trace in order of time, refused ones left out."""

    times_ns: array[int]
    rows: list[ReuseRow]
    block_tokens: int
    num_refused: int


def sample(scenario: Scenario, warn: Callable[[str], None]) -> Sample:
    """Read the scenario's trace. Raises ScenarioError where it is none, is wrong, or has fewer than two requests."""
    settings = _trace_of(scenario)
    path = path_given(scenario, "workload.path", settings.path, warn)
    block_tokens = block_tokens_of(settings)
    prefixes = Prefixes(block_tokens)
    times_ns, rows, num_refused = array("q"), [], 0
    for arrival in play_trace(settings, path, scenario.run.seed, warn).arrivals():
        if arrival.refusal is not None:
            num_refused += 1
            continue
        prompt = arrival.request.prompt
        times_ns.append(arrival.time_ns)
        rows.append(ReuseRow(prompt.num_tokens, arrival.output.length, prefixes.add(prompt)))
    if len(rows) < 2:
        raise ScenarioError(path, None, f"a fit needs two requests at least; the trace has {len(rows)} to serve")
    return Sample(times_ns, rows, block_tokens, num_refused)


def _trace_of(scenario: Scenario) -> TraceSettings:
    settings = scenario.workload
    if not isinstance(settings, TraceSettings):
        says = f"'{settings.type}' is synthetic already: a fit is made for a trace"
        raise ScenarioError(scenario.source, "workload.type", says)
    if settings.format in SESSION_FORMATS:
        says = f"{settings.format} holds sessions, whose requests wait for one another: a fit is of single requests"
        raise ScenarioError(scenario.source, "workload.format", says)
    return settings


class Prefixes:
    """Fed with prompts in order; tells of each which whole blocks it has in common with earlier ones.

    In memory is a number for each distinct block.
    """

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._nodes: dict[tuple[int, Content], int] = {}
        self._touched_by = array("q", [0])  # node by node, the last request; node 0 is the root
        self._recency = Recency(_WITHOUT_END, nearness_blocks=1.0)
        self._num_prompts = 0

    def add(self, prompt: Prompt) -> Reuse:
        """The next prompt, whose last token is never reused: it has to be computed to know the next one."""
        num_blocks, num_full = -(-prompt.num_tokens // self._block_tokens), prompt.num_tokens // self._block_tokens
        path = self._path(prompt, num_full)
        num_seen = bisect_left(path, len(self._touched_by))  # new nodes have the highest numbers
        num_known = min(num_seen, num_blocks - 1)
        source, reuse = None, Reuse(0, 0, 0)
        if num_known:
            source = self._touched_by[path[num_known - 1]]
            reuse = Reuse(num_known, self._recency.distance_to(source), self._recency.taken_from(source))
        self._recency.add(num_blocks, num_full, source, num_known)
        self._touched_by.extend([0] * (len(path) - num_seen))
        for node in path:
            self._touched_by[node] = self._num_prompts
        self._num_prompts += 1
        return reuse

    def _path(self, prompt: Prompt, num_blocks: int) -> list[int]:
        """The nodes of its first blocks; spans that are not a block each belong to nobody else."""
        node, path = 0, []
        for content, _, length in prompt.spans()[:num_blocks]:
            if length != self._block_tokens:
                break
            assert not isinstance(content, list), "literal tokens are no trace's"
            node = self._nodes.setdefault((node, content), len(self._nodes) + 1)
            path.append(node)
        return path
