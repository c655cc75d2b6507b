"""`llmsim run --replications N`: the same scenario with N seeds, and how sure the means over them are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich import box
from rich.markup import escape
from rich.table import Table

from ...sim.duration_text import duration_text
from ...sim.metrics import Summary, headline
from ...sim.student_t import mean_interval
from ..assembly import Assembly
from ..loading import overridden
from ..results import ResultFolder
from ..run import run_into
from ..schema import Scenario
from ..tables import LATENCIES
from .flattening import INTERVALS, Scalar, flat
from .grid import SEED
from .parallel import in_parallel
from .sweep import check_traffic

NOT_FIGURES = ("seed", "tensor_parallel", "departures.", "usable_blocks", "memory.", INTERVALS)
"""What is the same in every run by definition, or says how sure one run is."""
SAME_IN_ALL = (
    *("scenario", "version", "preset", "model", "gpu", "priced_by", "tensor_parallel", "departures"),
    "cache",
)
"""What a report over several runs tells once."""


@dataclass(frozen=True, slots=True)
class _Task:
    """What a process needs to carry out one run."""

    assembly: Assembly
    folder: Path
    journal: bool


def replicate(
    assemblies: Sequence[Assembly],
    target: Path,
    *,
    force: bool = False,
    journal: bool = False,
    jobs: int | None = None,
    warn: Callable[[str], None],
    on_run: Callable[[], None] = lambda: None,
) -> Summary:
    """Run each, into `target`/seed-N, and write `target`/summary.json: means and their 95 % intervals over the runs.

    The assemblies differ in their seed only. Nothing is left behind where it raises, as with one run.
    """
    result = ResultFolder(target, force=force)
    check_traffic(assemblies, warn)
    with result as folder:
        paths = [folder.path / f"seed-{assembly.scenario.run.seed}" for assembly in assemblies]
        tasks = [_Task(assembly, path, journal) for assembly, path in zip(assemblies, paths, strict=True)]
        summaries = []
        for summary in in_parallel(_carry_out, tasks, jobs):
            summaries.append(summary)
            on_run()
        whole = over_replications(sorted(summaries, key=lambda summary: int(summary["seed"])))
        folder.write_summary(whole)
    if all(figure["interval_95"][0] == figure["interval_95"][1] for figure in whole["figures"].values()):
        warn("every replication gave the same figures: the seed changes nothing here, and intervals mean nothing")
    return whole


def with_seeds(scenario: Scenario, number: int) -> list[Scenario]:
    """The scenario with that many seeds, counted from its own."""
    stated, first = scenario.model_dump(mode="json", exclude_unset=True), scenario.run.seed
    return [overridden(stated, {SEED: first + i}, scenario.source) for i in range(number)]


def _carry_out(task: _Task) -> Summary:
    return run_into(task.assembly, task.folder, journal=task.journal, warn=lambda _: None)


def over_replications(summaries: Sequence[Summary]) -> Summary:
    """Each figure's mean over independent runs and that mean's 95 % interval (Student's t), by its path."""
    rows = [flat(summary) for summary in summaries]
    first = summaries[0]
    return {
        **{key: first[key] for key in SAME_IN_ALL},
        "seeds": [summary["seed"] for summary in summaries],
        "num_overloaded": sum(bool(summary["overloaded"]) for summary in summaries),
        "figures": {
            path: {"mean": float(np.mean(values)), "interval_95": mean_interval(values)}
            for path in rows[0]
            if not path.startswith(NOT_FIGURES) and len(values := _numbers(rows, path)) == len(rows)
        },
    }


def _numbers(rows: Sequence[Mapping[str, Scalar]], path: str) -> list[float]:
    """The figure in each row that has it."""
    values = [row.get(path) for row in rows]
    return [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def replications_table(summary: Summary) -> Table:
    """Latencies and rates, each with the half-width of its interval."""
    title = f"{headline(summary)}\nmeans of {len(summary['seeds'])} runs, ± 95 % intervals"
    table = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "mean", "±", "P50", "±", "P99", "±"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for name, key in LATENCIES:
        cells = [_cells(summary, f"{key}.{point}", duration_text) for point in ("mean", "p50", "p99")]
        table.add_row(name, *(cell for pair in cells for cell in pair))
    table.add_section()
    for path in ("requests_per_s", "output_tokens_per_s", "goodput_rps", "prefix_hit_rate", "kv_usage.mean"):
        table.add_row(path, *_cells(summary, path, "{:,.4g}".format))
    return table


def _cells(summary: Summary, path: str, render: Callable[[float], str]) -> tuple[str, str]:
    if (figure := summary["figures"].get(path)) is None:
        return "-", ""
    low, high = figure["interval_95"]
    return render(figure["mean"]), render(float(f"{(high - low) / 2:.2g}"))
