"""From the `workload` section to the traffic itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ...policies.core.workload import Workload
from ..paths import path_given
from ..schema import Scenario
from ..schema_workload import SESSION_FORMATS, GeneratedSettings, TraceSettings
from .closed_loop import ClosedLoop
from .drafting import drafts
from .foretold import foretold
from .generated import GeneratedWorkload
from .session_trace import SessionTraceWorkload
from .trace import TraceWorkload


def build_workload(scenario: Scenario, warn: Callable[[str], None]) -> Workload:
    """The scenario's traffic.

    A trace is read through and checked here (ScenarioError), so that a bad row stops the run before it
    starts. `warn` gets sentences for people: what was found odd and what was done about it.
    """
    settings, seed = scenario.workload, scenario.run.seed
    if isinstance(settings, TraceSettings):
        path = path_given(scenario, "workload.path", settings.path, warn)
        return foretold(play_trace(settings, path, seed, warn), scenario)
    return foretold(generated_workload(settings, seed), scenario)


def generated_workload(settings: GeneratedSettings, seed: int) -> Workload:
    """A generator's traffic. Raises ScenarioError where a file of lengths is missing or wrong."""
    workload = GeneratedWorkload(settings, partial(drafts, settings, seed), seed)
    return workload if settings.num_clients is None else ClosedLoop(settings, workload, seed)


def play_trace(settings: TraceSettings, path: Path, seed: int, warn: Callable[[str], None]) -> Workload:
    """The traffic of a trace's file."""
    workload = SessionTraceWorkload if settings.format in SESSION_FORMATS else TraceWorkload
    return workload(settings, path, seed, warn)
