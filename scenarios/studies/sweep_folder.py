"""A sweep's folder: what is swept, one file a finished point, and the table of all of them.

sweep.json          the scenario as stated, the keys that were varied, digests of the files of its traffic
points/DIGEST.json  the summary of one point; the digest is that of the resolved scenario
sweep.parquet       one row a point
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from ...sim.metrics import Summary
from ..errors import ScenarioError
from ..writable import making
from .flattening import Scalar, flat

MANIFEST = "sweep.json"


class SweepFolder:
    """The folder of one sweep, made where it is missing; files in it are whole or not there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.table = path / "sweep.parquet"

    def claim(self, stated: Mapping[str, Any], varied: Collection[str], version: str, files: Mapping[str, str]) -> None:
        """Take the folder for this sweep; `files` are the digests of those that its traffic is read from.

        Raises ScenarioError where it holds something else.
        """
        manifest = self.path / MANIFEST
        known: set[str] = set()
        if manifest.exists():
            known = self._check_same(_read(manifest), stated, varied, version)
        elif self.path.exists() and not (self.path.is_dir() and not os.listdir(self.path)):
            raise ScenarioError(self.path, None, "exists and is not a sweep's folder; choose another one")
        with making(self.path):
            (self.path / "points").mkdir(parents=True, exist_ok=True)
        content = {"version": version, "varied": sorted({*known, *varied}), "files": files, "scenario": stated}
        write_whole(manifest, lambda path: _write_json(path, content))

    def _check_same(
        self, known: Mapping[str, Any], stated: Mapping[str, Any], varied: Collection[str], version: str
    ) -> set[str]:
        """The keys that were varied before; whatever else was stated must be the same."""
        if not {"version", "varied", "scenario"} <= known.keys():
            raise ScenarioError(self.path / MANIFEST, None, "is not what a sweep writes")
        if known["version"] != version:
            message = f"holds a sweep by llmsim {known['version']}, this is {version}; choose another folder"
            raise ScenarioError(self.path, None, message)
        either = {*known["varied"], *varied}
        before, now = (_without(flat(scenario), either) for scenario in (known["scenario"], stated))
        for key in [*before, *now]:
            if before.get(key) != now.get(key) or (key in before) != (key in now):
                change = f"{_said(before, key)} there, {_said(now, key)} here"
                message = f"holds a sweep of another scenario: {key} is {change}; choose another folder"
                raise ScenarioError(self.path, None, message)
        return set(known["varied"])

    def point(self, digest: str) -> Path:
        """The file of the point with this digest."""
        return self.path / "points" / f"{digest}.json"

    def summary(self, digest: str) -> Summary | None:
        """The summary of a point that is done; None where it is not."""
        path = self.point(digest)
        return _read(path) if path.exists() else None


def write_point(path: Path, summary: Summary) -> None:
    """Keep the summary of a finished point."""
    write_whole(path, lambda aside: _write_json(aside, summary))


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file aside and rename it, so that who is killed leaves no half of one."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write(aside)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScenarioError(path, None, f"cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise ScenarioError(path, None, "is not what a sweep writes")
    return value


def _without(figures: Mapping[str, Scalar], keys: Collection[str]) -> dict[str, Scalar]:
    return {path: value for path, value in figures.items() if not any(f"{path}.".startswith(f"{key}.") for key in keys)}


def _said(figures: Mapping[str, Scalar], key: str) -> str:
    return json.dumps(figures[key]) if key in figures else "not stated"
