"""`llmsim run`: carry a scenario out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..scenarios.assembly import assemble
from ..scenarios.errors import ScenarioError
from ..scenarios.loading import load_scenario
from ..scenarios.progress import RunProgress, StudyProgress
from ..scenarios.real_options import RealOptions
from ..scenarios.real_run import run_for_real
from ..scenarios.real_setup import real_setup
from ..scenarios.results import next_free
from ..scenarios.run import run_into
from ..scenarios.schema import Scenario
from ..scenarios.stopping import RunInterrupted
from ..scenarios.tables import print_summary
from ..sim.metrics import Summary
from .options import AsJson, Jobs, Overrides, ScenarioPath
from .real_options import (
    ClockOption,
    DeviceOption,
    DtypeOption,
    Engine,
    KernelsOption,
    MemoryOption,
    ModelPathOption,
    real_options,
    show_shortage,
)
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
    engine: Annotated[
        Engine, typer.Option("--engine", help="real: on a device, with the same core and policies.")
    ] = Engine.SIM,
    device: DeviceOption = None,
    kernels: KernelsOption = None,
    clock: ClockOption = None,
    model_path: ModelPathOption = None,
    dtype: DtypeOption = None,
    device_memory: MemoryOption = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario, print what the engine did, write a result folder.

    Example: llmsim run scenarios/agent.yaml --set workload.rate=8 -o results/agent-8rps
    """
    options = real_options(engine, device, kernels, clock, dtype, model_path, device_memory)
    loaded = load_scenario(scenario, overrides or [])
    if options is not None:
        if replications > 1:
            raise ScenarioError(None, "--replications", "goes with the simulator: runs would share the device")
        summary, target = _for_real(loaded, options, output, force, journal)
    else:
        assembly = assemble(loaded, warn)
        target = output or next_free(assembly.scenario.name)
        if replications > 1:
            _replicate(loaded, target, replications, force, journal, jobs, as_json)
            return
        with RunProgress(people, assembly.scenario) as progress:
            summary = run_into(assembly, target, force=force, journal=journal, warn=warn, on_progress=progress.update)
    print_summary(summary, people)
    say(f"results in {target}")
    if as_json:
        print_json(summary)
    if summary.get("interrupted"):
        counts = summary["num_requests"]
        left, come = counts["unfinished"], sum(counts.values())
        raise RunInterrupted(f"interrupted; {left:,} of the {come:,} requests that had come are unfinished")


def _replicate(
    loaded: Scenario, target: Path, number: int, force: bool, journal: bool, jobs: int | None, as_json: bool
) -> None:
    from ..scenarios.studies.replications import replicate, replications_table, with_seeds

    assemblies = [assemble(seeded) for seeded in with_seeds(loaded, number)]
    with StudyProgress(people, number) as study:
        whole = replicate(assemblies, target, force=force, journal=journal, jobs=jobs, warn=warn, on_run=study.advance)
    people.print(replications_table(whole))
    say(f"results in {target}")
    if as_json:
        print_json(whole)


def _for_real(
    loaded: Scenario, options: RealOptions, output: Path | None, force: bool, journal: bool
) -> tuple[Summary, Path]:
    try:
        setup = real_setup(loaded, options, warn)
    except ScenarioError as error:
        show_shortage(error)
        raise
    target = output or next_free(loaded.name)
    with RunProgress(people, loaded, "passed") as progress:
        summary = run_for_real(setup, target, force=force, journal=journal, warn=warn, on_progress=progress.update)
    return summary, target
