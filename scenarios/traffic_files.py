"""The files that a scenario's traffic is read from: a trace, and lengths of a generator's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from .paths import path_given
from .schema import Scenario
from .schema_lengths import Empirical
from .schema_workload import TraceSettings


def traffic_files(scenario: Scenario) -> dict[str, Path]:
    """Where each of them lies, by the path as given. Raises ScenarioError where a trace is missing."""
    workload = scenario.workload
    if isinstance(workload, TraceSettings):
        return {workload.path: path_given(scenario, "workload.path", workload.path, lambda _: None)}
    return {empirical.path: empirical.file for empirical in _empirical(workload)}


def digest(path: Path) -> str:
    """Of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _empirical(value: object) -> Iterator[Empirical]:
    """Every distribution that is a file, however deep it stands."""
    if isinstance(value, Empirical):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _empirical(part)
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _empirical(getattr(value, name))
