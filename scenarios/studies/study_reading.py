"""What a sweep or replications have left in their folder, as runs by setting and seed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..api import Result
from ..errors import ScenarioError
from ..overrides import apply_overrides
from .flattening import Scalar, flat
from .replications import NOT_FIGURES
from .sweep_folder import MANIFEST

Setting = tuple[Any, ...]
"""The values of a study's varied keys, in their order."""
Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Study:
    """Many runs of one scenario."""

    folder: Path
    keys: list[str]
    """Those that were varied, in the order of their names; none where only seeds differ."""
    runs: dict[tuple[Setting, int], dict[str, Scalar]]
    """What the summary of each run says, by setting and seed."""
    scenario: Mapping[str, Any]
    """As stated, before keys were varied."""
    files: list[str]
    """Digests of the files that its traffic is read from, as far as it has noted them."""
    results: dict[int, Result]
    """The result of each seed; a sweep keeps none."""

    def stated(self, setting: Setting) -> dict[str, Any]:
        """The scenario of one of its settings."""
        return apply_overrides(dict(self.scenario), dict(zip(self.keys, setting, strict=True)), None)[0]

    def settings(self) -> list[Setting]:
        """Each once, in order."""
        return list(dict.fromkeys(setting for setting, _ in self.runs))

    def seeds(self, setting: Setting) -> list[int]:
        """With which this setting was run."""
        return sorted(seed for found, seed in self.runs if found == setting)


def is_study(folder: Path) -> bool:
    """Whether a folder is that of a sweep or of replications."""
    summary = folder / "summary.json"
    return (folder / MANIFEST).is_file() or (summary.is_file() and "seeds" in _read(summary))


def open_study(folder: Path) -> Study:
    """The study in a folder. Raises ScenarioError where there is none, or it is not finished."""
    if not is_study(folder):
        raise ScenarioError(folder, None, "is not the folder of a sweep or of replications")
    try:
        return _open_sweep(folder) if (folder / MANIFEST).is_file() else _open_replications(folder)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ScenarioError):
            raise
        raise ScenarioError(folder, None, f"is not what a study writes: {error!r}") from None


def figures(run: Mapping[str, Scalar]) -> Figures:
    """What can be subtracted: the numbers of a summary that are results."""
    return {
        path: float(value)
        for path, value in run.items()
        if not path.startswith(NOT_FIGURES) and isinstance(value, int | float) and not isinstance(value, bool)
    }


def _open_sweep(folder: Path) -> Study:
    manifest, table = _read(folder / MANIFEST), folder / "sweep.parquet"
    if not table.is_file():
        raise ScenarioError(folder, None, "holds no sweep.parquet: the sweep is not finished")
    frame = pd.read_parquet(table)
    keys = [key for key in sorted(manifest["varied"]) if key in frame.columns]
    runs = {}
    for row in frame.to_dict("records"):
        summary = {str(key): _plain(value) for key, value in row.items() if key not in keys}
        runs[tuple(_plain(row[key]) for key in keys), int(row["seed"])] = summary
    files = sorted(manifest.get("files", {}).values())
    return Study(folder, keys, runs, manifest["scenario"], files, {})


def _open_replications(folder: Path) -> Study:
    seeds = _read(folder / "summary.json")["seeds"]
    results = {int(seed): Result.open(folder / f"seed-{seed}") for seed in seeds}
    runs = {((), seed): flat(result.summary) for seed, result in results.items()}
    return Study(folder, [], runs, results[seeds[0]].scenario, [], results)


def _plain(value: Any) -> Any:
    """A cell of the table as JSON would have it."""
    value = getattr(value, "item", lambda: value)()
    return None if isinstance(value, float) and value != value else value


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScenarioError(path, None, f"cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise ScenarioError(path, None, "is not what a study writes")
    return value
