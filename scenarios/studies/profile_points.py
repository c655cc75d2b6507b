"""What has been timed so far: a file that is only ever added to, so that a killed profile goes on where it was.

The first line says what is measured on what; then a line for each visit to a step, and for each other measurement.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...calibrate.given import POINTS
from ...calibrate.whole_steps import STEPS
from ...calibrate.writing import DATA_SHEET, TIMINGS
from ...sim.cost_model.profile import HEADER
from ..errors import ScenarioError

OWN_FILES = (HEADER, TIMINGS, STEPS, DATA_SHEET, POINTS)
"""What a profile leaves in its folder."""


class PointsFile:
    """The lines of one profile; `identity` decides whether those that are there belong to it."""

    def __init__(self, folder: Path, identity: Mapping[str, Any], *, force: bool) -> None:
        """Raises ScenarioError where the folder holds something else; with `force` an older profile is replaced."""
        self.folder = folder
        self.path = folder / POINTS
        self.lines: list[dict[str, Any]] = []
        """All but the first."""
        check_folder(folder, force=force)
        if self.path.is_file() and not force:
            self._go_on(identity)
        else:
            self._begin(identity)

    def add(self, line: Mapping[str, Any]) -> None:
        """One more measurement, on the disk when this returns."""
        self.lines.append(dict(line))
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def values(self, key: str) -> list[Any]:
        """What the lines with such a key say."""
        return [line[key] for line in self.lines if key in line]

    def _begin(self, identity: Mapping[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in OWN_FILES:
            (self.folder / name).unlink(missing_ok=True)
        self.path.write_text(json.dumps({"profile": identity}) + "\n", encoding="utf-8")

    def _go_on(self, identity: Mapping[str, Any]) -> None:
        lines = list(_whole_lines(self.path))
        theirs = lines[0].get("profile") if lines else None
        if not isinstance(theirs, dict):
            raise ScenarioError(self.path, None, "holds no unfinished profile; choose another folder, or --force")
        for key, mine in identity.items():
            if theirs.get(key) != mine:
                message = f"holds an unfinished profile whose {key} is {theirs.get(key)!r}, not {mine!r}"
                raise ScenarioError(self.folder, None, f"{message}; choose another folder, or --force to begin anew")
        self.lines = lines[1:]


def check_folder(folder: Path, *, force: bool) -> None:
    """ScenarioError where a folder is neither new, nor an unfinished profile, nor one that `force` may replace."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ScenarioError(folder, None, "is not a folder")
    names = {path.name for path in folder.iterdir()}
    if names and POINTS not in names:
        raise ScenarioError(folder, None, "holds something else than a profile; choose another folder")
    if HEADER in names and not force:
        raise ScenarioError(folder, None, "holds a finished profile; choose another folder, or --force to replace it")


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines that were written to their end; what a kill has cut off is cut off the file too."""
    raw = path.read_bytes()
    end = raw.rfind(b"\n") + 1
    if end < len(raw):
        with path.open("r+b") as file:
            file.truncate(end)
    for number, text in enumerate(raw[:end].splitlines(), 1):
        try:
            line = json.loads(text)
        except ValueError:
            raise ScenarioError(path, f"line {number}", "is not JSON; choose another folder, or --force") from None
        if not isinstance(line, dict):
            raise ScenarioError(path, f"line {number}", "is not an object; choose another folder, or --force")
        yield line
