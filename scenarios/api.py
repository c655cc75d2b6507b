"""What notebooks and scripts call: `llmsim.run(scenario)` gives a result whose tables are pandas frames."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd

from ..sim.metrics import Summary
from .assembly import assemble
from .errors import ScenarioError
from .loading import overridden
from .overrides import Overrides
from .real_options import RealOptions
from .real_run import run_for_real
from .real_setup import real_setup
from .run import run_into
from .schema import Scenario
from .studies.grid import Vary
from .studies.sweep import Sweep
from .yaml_reading import read_yaml_mapping

TABLES = ("requests", "steps", "events", "itl")


class Result:
    """What a run left in its folder: the summary and, read when first asked for, its tables.

    docs/results.md says what every figure and column is; times are seconds from the start of the run.
    """

    def __init__(self, folder: Path, summary: Summary) -> None:
        self.folder = folder
        self.summary = summary

    @classmethod
    def open(cls, folder: str | Path) -> Result:
        """A result folder that `llmsim run` or `llmsim.run` wrote. Raises ScenarioError where it is none."""
        folder = Path(folder)
        path = folder / "summary.json"
        if not path.is_file():
            raise ScenarioError(folder, None, "is not a result folder: it has no summary.json")
        try:
            summary = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ScenarioError(path, None, f"cannot be read: {error}") from None
        if not isinstance(summary, dict) or not all((folder / f"{table}.parquet").is_file() for table in TABLES):
            raise ScenarioError(folder, None, "is not the result folder of a run: tables are missing")
        return cls(folder, summary)

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row a request, in the order in which they ended."""
        return self._table("requests")

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row a step of the engine."""
        return self._table("steps")

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row a preemption or eviction: who, by whom, at which step."""
        return self._table("events")

    @cached_property
    def itl(self) -> pd.DataFrame:
        """The gaps between tokens, rising (`gap_s`), and how many tokens waited each (`num_tokens`)."""
        return self._table("itl")

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The resolved scenario: every default explicit."""
        return read_yaml_mapping(self.folder / "scenario.yaml")

    def _table(self, name: str) -> pd.DataFrame:
        path = self.folder / f"{name}.parquet"
        try:
            return pd.read_parquet(path)
        except (OSError, ValueError) as error:
            raise ScenarioError(path, None, f"cannot be read: {error}") from None


def run(
    scenario: str | Path | dict[str, Any] | Scenario,
    overrides: Overrides = (),
    *,
    output: str | Path | None = None,
    force: bool = False,
    real: RealOptions | None = None,
) -> Result:
    """Carry a scenario out and return its result.

    scenario   the path of a YAML, the mapping that one would hold, or a Scenario
    overrides  as `--set`: `{"workload.rate": 8}` or `["workload.rate=8"]`
    output     the result folder; where left out, a temporary one that goes with the Result
    force      replace `output` if it is there
    real       run it on the real engine: `RealOptions(device="cpu")`

    Raises ScenarioError, one line, for whatever is wrong with the scenario; what is merely odd is a warning.
    """
    raw, file = _stated(scenario)
    stated = overridden(raw, overrides, file)
    carry_out = partial(run_into, assemble(stated, _warn)) if real is None else _on_device(stated, real)
    temporary = Path(tempfile.mkdtemp(prefix="llmsim-")) if output is None else None
    target = temporary / "result" if temporary else Path(str(output))
    try:
        result = Result(target, carry_out(target, force=force, warn=_warn))
    except BaseException:
        _remove(temporary)
        raise
    weakref.finalize(result, _remove, temporary)
    return result


def sweep(
    scenario: str | Path | dict[str, Any] | Scenario,
    vary: Vary,
    *,
    seeds: int = 1,
    overrides: Overrides = (),
    output: str | Path | None = None,
    jobs: int | None = None,
) -> pd.DataFrame:
    """Carry a scenario out for every combination of values and every seed, on all cores; one row a run.

    vary    the values that each key takes: `{"policies.chunk_size.tokens": [512, 2048]}`
    seeds   how many, counted from the scenario's `run.seed`
    output  the sweep's folder, in which finished runs are found again; where left out, nothing is kept
    jobs    processes; None is one a core

    Columns are the varied keys, `seed`, and the summary's figures by their path: `ttft_s.p99`. Raises ScenarioError
    before anything has run where one of the points is wrong.
    """
    if seeds < 1:
        raise ScenarioError(None, "seeds", f"{seeds} is out of range: must be at least 1")
    raw, file = _stated(scenario)
    temporary = Path(tempfile.mkdtemp(prefix="llmsim-")) if output is None else None
    folder = temporary or Path(str(output))
    try:
        study = Sweep(raw, file, vary, num_seeds=seeds, folder=folder, overrides=overrides, warn=_warn)
        return study.run(jobs)
    finally:
        _remove(temporary)


def _stated(scenario: str | Path | dict[str, Any] | Scenario) -> tuple[dict[str, Any], Path | None]:
    """The mapping that a scenario's YAML holds, and the file."""
    if isinstance(scenario, Scenario):
        return scenario.model_dump(mode="json", exclude_unset=True), scenario.source
    if isinstance(scenario, dict):
        return scenario, None
    return read_yaml_mapping(Path(scenario)), Path(scenario)


def _on_device(scenario: Scenario, options: RealOptions) -> Callable[..., Summary]:
    return partial(run_for_real, real_setup(scenario, options, _warn))


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)


def _remove(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
