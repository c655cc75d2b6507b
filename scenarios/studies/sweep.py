"""`llmsim sweep`: one scenario under many settings and seeds, on all cores, as one table.

Each finished point is a file, named by the digest of its resolved scenario: a sweep that was killed goes on where it
was, and one with more values or seeds computes only the new ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ... import __version__
from ...sim.metrics import Summary
from ...sim.recorder import Recorder
from ..assembly import Assembly, assemble
from ..loading import overridden
from ..overrides import Overrides, apply_overrides
from ..policy_files import source_digests
from ..run import settled, simulate
from ..traffic_files import digest, traffic_files
from ..workloads.building import build_workload
from .flattening import flat
from .grid import Vary, check_vary, column, grid
from .interrupted import StudyInterrupted
from .parallel import in_parallel
from .sweep_folder import SweepFolder, write_point, write_whole


@dataclass(frozen=True, slots=True)
class _Task:
    """What a process needs to carry out one point."""

    assembly: Assembly
    path: Path


class Sweep:
    """A sweep that has been checked: every point's scenario is right, and its folder may be used."""

    def __init__(
        self,
        raw: dict[str, Any],
        file: Path | None,
        vary: Vary,
        *,
        num_seeds: int,
        folder: Path,
        overrides: Overrides = (),
        warn: Callable[[str], None],
    ) -> None:
        """`raw` is the scenario's mapping, read from `file`. Raises ScenarioError; nothing has run then."""
        check_vary(vary)
        stated, _ = apply_overrides(raw, overrides, file)
        first = overridden(stated, {key: values[0] for key, values in vary.items()}, file)
        self.vary = vary
        self.points = grid(vary, first.run.seed, num_seeds)
        self._assemblies = [assemble(overridden(stated, point.overrides(), file)) for point in self.points]
        assemble(first, warn)  # once more, for what is odd about model and GPU
        files = check_traffic(self._assemblies, warn)
        self._digests = [_digest(assembly, files) for assembly in self._assemblies]
        self.folder = SweepFolder(folder)
        self.folder.claim(stated, vary.keys(), __version__, files)
        self.num_known = sum(self.folder.summary(digest) is not None for digest in self._digests)

    def run(self, jobs: int | None = None, on_point: Callable[[], None] = lambda: None) -> pd.DataFrame:
        """Carry out what is missing, write `sweep.parquet` and return it; `on_point` is called for each point done."""
        given = zip(self._digests, self._assemblies, strict=True)
        missing = {digest: assembly for digest, assembly in given if self.folder.summary(digest) is None}
        tasks = [_Task(assembly, self.folder.point(digest)) for digest, assembly in missing.items()]
        try:
            for _ in in_parallel(_carry_out, tasks, jobs):
                on_point()
        except KeyboardInterrupt:
            kept = sum(task.path.exists() for task in tasks) + self.num_known
            message = f"{kept:,} of {len(self.points):,} runs are kept in {self.folder.path}"
            raise StudyInterrupted(f"interrupted; {message}, and the same command goes on from there") from None
        frame = self._table()
        write_whole(self.folder.table, lambda path: frame.to_parquet(path, index=False))
        return frame

    def _table(self) -> pd.DataFrame:
        """One row a point: the varied keys, the seed, every figure of the summary."""
        keys = {key: column([point.values[key] for point in self.points]) for key in self.vary}
        summaries = [self.folder.summary(digest) for digest in self._digests]
        figures = pd.DataFrame([flat({**summary, "departures": {}}) for summary in summaries if summary is not None])
        settings = pd.DataFrame({**keys, "seed": [point.seed for point in self.points]})
        return pd.concat([settings, figures.drop(columns=settings.columns, errors="ignore")], axis=1)


def measure(assembly: Assembly) -> Summary:
    """The summary of a run that leaves no folder; what is odd about the traffic has been said before."""
    assembly = settled(assembly, lambda _: None)
    return simulate(assembly, build_workload(assembly.scenario, lambda _: None), Recorder())


def _carry_out(task: _Task) -> None:
    write_point(task.path, measure(task.assembly))


def check_traffic(assemblies: Sequence[Assembly], warn: Callable[[str], None]) -> dict[str, str]:
    """Read every trace and every file of lengths before anything runs; their digests, by the path as given."""
    digests: dict[str, str] = {}
    seen = set()
    for assembly in assemblies:
        scenario = assembly.scenario
        if (key := scenario.workload.model_dump_json()) not in seen and (files := traffic_files(scenario)):
            seen.add(key)
            build_workload(scenario, warn)
            digests |= {given: digest(path) for given, path in files.items()}
    return digests


def _digest(assembly: Assembly, digests: dict[str, str]) -> str:
    """Names a point by all that its figures depend on: the scenario, model, GPU, files read, version."""
    files = {given: digests[given] for given in traffic_files(assembly.scenario)}
    whole = [__version__, assembly.resolved(), repr(assembly.model), repr(assembly.gpu), files]
    if sources := source_digests(assembly.policies, assembly.folders):
        whole.append(sources)
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:24]
