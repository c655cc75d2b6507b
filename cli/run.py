"""`llmsim run`: carry a scenario out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..scenarios.assembly import assemble
from ..scenarios.loading import load_scenario
from ..scenarios.progress import RunProgress, StudyProgress
from ..scenarios.results import next_free
from ..scenarios.run import run_into
from ..scenarios.studies.replications import replicate, replications_table, with_seeds
from ..scenarios.tables import print_summary
from .options import AsJson, Jobs, Overrides, ScenarioPath
from .speech import people, print_json, say, warn


def run(
    scenario: ScenarioPath,
    overrides: Overrides = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The result folder; results/NAME-NNN where left out.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the result folder if it is there.")] = False,
    journal: Annotated[bool, typer.Option("--journal", help="Write journal.jsonl.gz, for `llmsim replay`.")] = False,
    replications: Annotated[int, typer.Option(min=1, help="Runs, with seeds from run.seed on, and their means.")] = 1,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario, print what the engine did, write a result folder.

    Example: llmsim run scenarios/agent.yaml --set workload.rate=8 -o results/agent-8rps
    """
    loaded = load_scenario(scenario, overrides or [])
    assembly = assemble(loaded, warn)
    target = output or next_free(assembly.scenario.name)
    if replications > 1:
        assemblies = [assemble(seeded) for seeded in with_seeds(loaded, replications)]
        with StudyProgress(people, replications) as study:
            whole = replicate(
                assemblies, target, force=force, journal=journal, jobs=jobs, warn=warn, on_run=study.advance
            )
        people.print(replications_table(whole))
        say(f"results in {target}")
        if as_json:
            print_json(whole)
        return
    with RunProgress(people, assembly.scenario) as progress:
        summary = run_into(assembly, target, force=force, journal=journal, warn=warn, on_progress=progress.update)
    print_summary(summary, people)
    say(f"results in {target}")
    if as_json:
        print_json(summary)
