"""Files that a scenario names: relative to the scenario's folder, or else to the working directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .errors import ScenarioError
from .schema import Scenario


def path_given(scenario: Scenario, key: str, relative: str, warn: Callable[[str], None]) -> Path:
    """The file that the scenario's `key` names.

    Where the scenario's folder has none but the working directory does, `warn` gets a sentence that says so;
    ScenarioError where neither has.
    """
    path = scenario.path_to(relative)
    if path.exists():
        return path
    if Path(relative).exists():
        warn(f"{key}: {relative} is taken from the working directory, not the scenario's folder")
        return Path(relative)
    message = f"there is no file {path}; paths are relative to the scenario's folder"
    raise ScenarioError(scenario.source, key, message)
