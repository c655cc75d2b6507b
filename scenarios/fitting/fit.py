"""`llmsim workload fit`: from a trace to a synthetic workload that is like it, and how like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..assembly import assemble
from ..loading import load_scenario, overridden
from ..overrides import Overrides
from ..schema import Scenario
from ..schema_workload import TraceSettings
from ..traces.guessing import guess_format
from ..traffic_report import observe
from .comparison import Statistic, compared
from .files import FitFiles
from .pace import fitted_pace
from .sample import sample

MAX_ROWS = 20_000
"""Of the tables, unless told otherwise."""

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Fit:
    """A fit as it was written, held against its trace."""

    scenario: Path
    reason: str
    """Why the arrivals are fitted as they are."""
    statistics: list[Statistic]

    def missed(self) -> list[Statistic]:
        """Those that do not keep their bounds."""
        return [statistic for statistic in self.statistics if not statistic.is_within]

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        statistics = [statistic.as_json() for statistic in self.statistics]
        return {
            "scenario": str(self.scenario),
            "arrivals": self.reason,
            "within_bounds": not self.missed(),
            "statistics": statistics,
        }


def trace_scenario(path: Path, form: str | None, overrides: Overrides, say: Callable[[str], None]) -> Scenario:
    """The scenario that plays a trace: one of a YAML, or one around a trace's file. Raises ScenarioError.

    A trace alone is of no model and no GPU: they are llama-3.1-8b and h100-sxm, for which block size and limits are
    known, until `overrides` or whoever uses the fit says otherwise. `say` hears of a format that was guessed.
    """
    if path.suffix in (".yaml", ".yml"):
        given = [] if form is None else [f"workload.format={form}"]
        return load_scenario(path, [*given, *overrides])
    if form is None:
        form = guess_format(path)
        say(f"{path} is read as {form}")
    workload = {"type": "trace", "path": str(path), "format": form}
    raw = {"name": "trace", "model": "llama-3.1-8b", "hardware": {"gpu": "h100-sxm"}, "workload": workload}
    return overridden(raw, overrides)


def fit_trace(
    scenario: Scenario, target: Path, *, force: bool, warn: Callable[[str], None], max_rows: int = MAX_ROWS
) -> Fit:
    """Write a scenario like `scenario`, whose trace is replaced by synthetic traffic, and compare the two.

    Raises ScenarioError for a trace that cannot be fitted, and for files that are there already.
    """
    files = FitFiles(target)
    files.check(force)
    assembly = assemble(scenario, warn)
    found = sample(scenario, warn)
    settings = scenario.workload
    assert isinstance(settings, TraceSettings)
    if found.num_refused:
        warn(f"{settings.path}: {found.num_refused:,} requests without prompt or output are left out")
    if len(found.rows) > max_rows:
        warn(f"{settings.path}: the tables hold {max_rows:,} rows, drawn from {len(found.rows):,} requests")
    pace = fitted_pace(found.times_ns, max_rows)
    rows = sorted(found.rows)
    workload: dict[str, Any] = {
        "type": "prefix_reuse",
        "requests": len(rows),
        "block_tokens": found.block_tokens,
    }
    if settings.max_tokens != "exact":
        workload["max_tokens"] = settings.max_tokens.model_dump()
    files.write(scenario, Path(settings.path).name, evenly(rows, max_rows), pace, workload)
    synthetic = observe(assemble(load_scenario(target)), warn)
    return Fit(target, pace.reason, compared(observe(assembly, lambda _: None), synthetic))


def evenly(rows: Sequence[Row], max_rows: int) -> list[Row]:
    """All of them, or so many at even distances."""
    if len(rows) <= max_rows:
        return list(rows)
    return [rows[(2 * place + 1) * len(rows) // (2 * max_rows)] for place in range(max_rows)]
