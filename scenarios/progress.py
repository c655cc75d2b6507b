"""A progress bar for long runs; short ones show none."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from .schema import Scenario

PATIENCE_S = 1.0
"""Runs shorter than this show no bar."""


class RunProgress:
    """A context whose `update` draws the bar once the run has taken a while, on a terminal only."""

    def __init__(self, console: Console, scenario: Scenario, passed: str = "simulated") -> None:
        """`passed`: what the run's time has done."""
        self._console = console
        self._total = getattr(scenario.workload, "requests", None) or getattr(scenario.workload, "limit", None)
        self._begun = time.monotonic()
        self._passed = passed
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> RunProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def update(self, now_ns: int, num_ended: int) -> None:
        """The run has come to `now_ns` in its own time, and so many requests have ended."""
        if not self._console.is_terminal or time.monotonic() - self._begun < PATIENCE_S:
            return
        if self._progress is None:
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,} requests"))
            self._progress = Progress(*columns, TimeElapsedColumn(), console=self._console, transient=True)
            self._progress.start()
            self._task = self._progress.add_task("", total=self._total)
        assert self._task is not None
        self._progress.update(self._task, completed=num_ended, description=f"{now_ns / 1e9:,.0f} s {self._passed}")


class StudyProgress:
    """A context whose `advance` draws how many runs of a study are done, on a terminal only."""

    def __init__(self, console: Console, total: int, done: int = 0) -> None:
        columns = (TextColumn("{task.completed:,} of {task.total:,} runs"), BarColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task("", total=total, completed=done)

    def __enter__(self) -> StudyProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def advance(self) -> None:
        """One more run is done."""
        self._progress.advance(self._task)


class CountProgress:
    """A context whose `update` draws how far something has come whose end is not known, on a terminal only."""

    def __init__(self, console: Console, what: str) -> None:
        columns = (TextColumn("{task.completed:,} " + what), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> CountProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def update(self, count: int) -> None:
        """So many by now."""
        self._progress.update(self._task, completed=count)
