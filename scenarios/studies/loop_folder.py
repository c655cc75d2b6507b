"""The folder of a loop: what it is a loop of, and the parts of it that are done, which are found again.

begun.json   scenario, device, profile and versions, which must be the same for parts to belong together
table/       the device's timings, where the loop measured them; profile/, what was fitted to them
real-1/ …    result folders, of the real engine and of the simulator
policies/    of each variant of the scenario its changes, and such result folders
loop.json    the figures; report.md and its pictures show them
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ..errors import ScenarioError
from ..writable import making
from .sweep_folder import write_whole

MANIFEST, FIGURES, REPORT = "begun.json", "loop.json", "report.md"
CHANGES = "changes.yaml"


class LoopFolder:
    """A folder that is made where it is missing; parts in it are whole or not there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def claim(self, identity: Mapping[str, Any]) -> None:
        """Take the folder for this loop. Raises ScenarioError where it holds something else."""
        manifest = self.path / MANIFEST
        if manifest.is_file():
            self._check_same(manifest, identity)
            return
        if self.path.exists() and not (self.path.is_dir() and not os.listdir(self.path)):
            raise ScenarioError(self.path, None, "exists and is not a loop's folder; choose another one")
        with making(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        write_json(manifest, identity)

    def _check_same(self, manifest: Path, identity: Mapping[str, Any]) -> None:
        known = _read(manifest)
        for key, mine in identity.items():
            theirs = known.get(key) if isinstance(known, dict) else None
            if theirs != mine:
                message = f"holds a loop {_other(key, theirs, mine)}; choose another folder"
                raise ScenarioError(self.path, None, message)

    def claim_variant(self, name: str, changes: Mapping[str, Any]) -> None:
        """Write down what a variant changes. Raises ScenarioError where runs are there of another one of this name."""
        folder = self.path / "policies" / name
        noted, text = folder / CHANGES, yaml.safe_dump(dict(changes), sort_keys=True)
        if any(folder.glob("real-*/summary.json")) and not (noted.is_file() and noted.read_text() == text):
            message = f"holds runs of another policy '{name}'; give this one a new name, or choose another folder"
            raise ScenarioError(self.path, None, message)
        folder.mkdir(parents=True, exist_ok=True)

        def write(aside: Path) -> None:
            aside.write_text(text, encoding="utf-8")

        write_whole(noted, write)

    def part(self, name: str) -> Path:
        """The result folder of one run."""
        return self.path / name

    def summary(self, name: str) -> dict[str, Any] | None:
        """That of a run which is done; None where it is not."""
        path = self.part(name) / "summary.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Strict JSON, whole or not at all."""
    text = json.dumps(value, indent=1, allow_nan=False) + "\n"

    def write(aside: Path) -> None:
        aside.write_text(text, encoding="utf-8")

    write_whole(path, write)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScenarioError(path, None, f"cannot be read: {error}") from None


def _other(key: str, theirs: object, mine: object) -> str:
    known, asked = json.dumps(theirs), json.dumps(mine)
    return f"whose {key} is {known}, not {asked}" if len(known) + len(asked) <= 120 else f"of another {key}"
