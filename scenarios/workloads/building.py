"""From the `workload` section to the traffic itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ...policies.core.workload import Workload
from ..errors import ScenarioError
from ..schema import Scenario
from ..schema_workload import AgentSettings, IndependentSettings
from .agent import AgentWorkload
from .independent import IndependentWorkload
from .trace import TraceWorkload


def build_workload(scenario: Scenario, warn: Callable[[str], None]) -> Workload:
    """The scenario's traffic.

    A trace is read through and checked here (ScenarioError), so that a bad row stops the run before it
    starts. `warn` gets sentences for people: what was found odd and what was done about it.
    """
    settings, seed = scenario.workload, scenario.run.seed
    if isinstance(settings, AgentSettings):
        return AgentWorkload(settings, seed)
    if isinstance(settings, IndependentSettings):
        return IndependentWorkload(settings, seed)
    return TraceWorkload(settings, _trace_path(scenario, settings.path), warn)


def _trace_path(scenario: Scenario, relative: str) -> Path:
    """The trace's file; where there is none, the error says what the path is relative to."""
    path = scenario.path_to(relative)
    if path.exists():
        return path
    folder = path.parent if scenario.source is None else scenario.source.parent
    message = f"there is no trace {path}; paths are relative to the scenario's folder"
    if Path(relative).is_file():
        message += f", so write {os.path.relpath(relative, folder)}"
    raise ScenarioError(scenario.source, "workload.path", message)
