"""The result folder: written aside and renamed when whole, so that no half of one looks like a result."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from ..sim.metrics import Summary, summary_json
from .errors import ScenarioError
from .writable import check_folder, check_name, hidden_sibling, make_parents, remove_empty

RESULTS = Path("results")


class ResultFolder:
    """A context that yields a folder to write in (`path`) and makes it the result on leaving.

    Until then it is a hidden sibling, `.NAME.partial-…`; any exception, Ctrl-C included, removes it. With
    `force` an existing result is kept until the new one is whole, then replaced.
    """

    def __init__(self, target: Path, *, force: bool = False) -> None:
        """Raises ScenarioError where `target` exists and may not be replaced, or cannot be made; leaves nothing."""
        self.target = target
        self._force = force
        self._name = target.name
        self._numbered_in: Path | None = None
        self._check_target()
        check_folder(target)

    @classmethod
    def numbered(cls, name: str, results: Path = RESULTS) -> ResultFolder:
        """`results/<name>-NNN` with the next free number, looked up again on leaving."""
        folder = cls(next_free(name, results))
        folder._name, folder._numbered_in = name, results
        return folder

    def _check_target(self) -> None:
        check_name(self.target)
        if not os.path.lexists(self.target):
            return
        if not self._force:
            raise ScenarioError(self.target, None, "exists already; choose another folder, or --force to replace it")
        if not _may_be_replaced(self.target):
            raise ScenarioError(self.target, None, "is not a result folder, so --force does not replace it")

    def __enter__(self) -> ResultFolder:
        self._made = make_parents(self.target)
        self.path = hidden_sibling(self.target, "partial")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._publish()
        finally:
            shutil.rmtree(self.path, ignore_errors=True)
            remove_empty(self._made)  # not where the result, or another run's, stands

    def write_summary(self, summary: Summary) -> None:
        """`summary.json`, strict JSON."""
        self._write("summary.json", summary_json(summary))

    def write_scenario(self, scenario: Mapping[str, Any]) -> None:
        """`scenario.yaml`: the resolved scenario, keys in the order given."""
        self._write("scenario.yaml", yaml.safe_dump(dict(scenario), sort_keys=False, allow_unicode=True))

    def _write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text, encoding="utf-8", newline="\n")

    def _publish(self) -> None:
        """The new folder takes the name; an old one goes only then, and comes back if that fails."""
        if self._numbered_in is not None and os.path.lexists(self.target):
            self.target = next_free(self._name, self._numbered_in)  # another run was faster
        self._check_target()
        if os.path.lexists(self.target):
            self._replace()
        else:
            self.path.rename(self.target)

    def _replace(self) -> None:
        aside = hidden_sibling(self.target, "old")
        old = aside / self.target.name
        try:
            self.target.rename(old)
            self.path.rename(self.target)
        except BaseException:
            if old.exists():
                old.rename(self.target)
            aside.rmdir()
            raise
        shutil.rmtree(aside, ignore_errors=True)


def next_free(name: str, results: Path = RESULTS) -> Path:
    """`results/<name>-NNN`, one above the highest number there."""
    if Path(name).name != name:
        raise ScenarioError(None, "name", f"{name!r} cannot name a result folder; use letters, digits, - and _")
    numbered = re.compile(re.escape(name) + r"-(\d{3,})")
    names = os.listdir(results) if results.is_dir() else []
    taken = [int(match[1]) for entry in names if (match := numbered.fullmatch(entry))]
    return results / f"{name}-{max(taken, default=0) + 1:03d}"


def _may_be_replaced(folder: Path) -> bool:
    """A result or an empty folder: `--force` with a wrong path must not cost anybody's files."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return (folder / "summary.json").is_file() or not any(folder.iterdir())
