"""`llmsim sweep`: a scenario under every combination of values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..scenarios.progress import StudyProgress
from ..scenarios.studies.grid import parse_vary
from ..scenarios.studies.sweep import Sweep
from ..scenarios.studies.sweep_table import json_rows, sweep_table
from ..scenarios.yaml_reading import read_yaml_mapping
from .options import AsJson, Jobs, Overrides, ScenarioPath
from .speech import people, print_json, say, warn


def sweep(
    scenario: ScenarioPath,
    output: Annotated[Path, typer.Option("-o", "--output", help="The sweep's folder.", show_default=False)],
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", help="A key and its values: workload.rate=4,8. May be given again.", metavar="KEY=A,B"),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each setting, with seeds from run.seed on.")] = 1,
    jobs: Jobs = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario under every combination of values, on all cores, into one table: OUTPUT/sweep.parquet.

    What is finished is kept: the same command goes on where a sweep was stopped, and more values or seeds add to it.

    Example: llmsim sweep scenarios/agent.yaml --vary policies.chunk_size.tokens=512,2048 --seeds 3 -o sweeps/chunk
    """
    values = parse_vary(vary or [])
    raw = read_yaml_mapping(scenario)
    study = Sweep(raw, scenario, values, num_seeds=seeds, folder=output, overrides=overrides or [], warn=warn)
    if study.num_known:
        say(f"{study.num_known:,} of {len(study.points):,} runs are known from before")
    with StudyProgress(people, len(study.points), study.num_known) as progress:
        frame = study.run(jobs, progress.advance)
    people.print(sweep_table(frame, list(values)))
    say(f"{len(frame):,} rows in {study.folder.table}")
    if as_json:
        print_json({"path": str(study.folder.table), "num_known": study.num_known, "rows": json_rows(frame)})
