"""`llmsim calibrate loop`: measure a device, predict a run, carry it out, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..scenarios.loading import load_scenario
from ..scenarios.progress import CountProgress
from ..scenarios.real_options import Clock, Dtype, Kernels, RealOptions
from ..scenarios.studies.loop import LoopStudy, LoopWishes
from ..scenarios.studies.loop_policies import read_variants
from ..scenarios.studies.loop_report import loop_failures, loop_tables, write_report
from ..scenarios.studies.profile_setup import GridName
from .options import AsJson, Overrides, ScenarioPath
from .speech import people, print_json, say, warn


def loop(
    scenario: ScenarioPath,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, cuda:1 …; a GPU where there is one if left out.", show_default=False)
    ] = "auto",
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile", help="A fitted profile of it, or one by name; measured where left out.", show_default=False
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs on the device, whose differences are the noise.")] = 2,
    clock: Annotated[
        Clock | None,
        typer.Option(help="virtual where left out, on a GPU wall; as of llmsim run.", show_default=False),
    ] = None,
    policies: Annotated[
        Path | None,
        typer.Option("--policies", help="A YAML of variants of the scenario, to be ranked.", show_default=False),
    ] = None,
    overrides: Overrides = None,
    kernels: Annotated[Kernels, typer.Option(help="Whose kernels.")] = Kernels.AUTO,
    dtype: Annotated[Dtype, typer.Option(help="Of weights, activations and KV.")] = Dtype.AUTO,
    threads: Annotated[int, typer.Option(min=1, help="Of a CPU, those that compute.")] = 1,
    grid: Annotated[
        GridName | None,
        typer.Option(help="What is measured: small where left out, on a GPU full.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="loops/NAME where left out.", show_default=False)
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Take a profile of another device, model or version; the report says so.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 where an error is beyond its bound.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a device, simulate the scenario on it, carry it out for real, and report how far apart they are.

    Parts that are done are kept: the same command goes on where it was broken off.

    Example: llmsim calibrate loop scenarios/cpu-loop.yaml --device cpu -o loops/cpu
    """
    stated = load_scenario(scenario, overrides or [])
    variants = None if policies is None else read_variants(policies)
    options = RealOptions(device, kernels, clock or default_clock(device), dtype, threads=threads)
    wishes = LoopWishes(stated, options, profile, grid, repeats, force, variants)
    study = LoopStudy(wishes, output or Path("loops") / stated.name, warn, say)
    with CountProgress(people, "visits of the profile left") as progress:
        found = study.run(progress.update)
    write_report(found)
    people.print(loop_tables(found.figures))
    say(f"report in {found.folder.path / 'report.md'}")
    if as_json:
        print_json(found.figures)
    broken, beyond = loop_failures(found.figures)
    for sentence in (*broken, *(beyond if check else ())):
        warn(sentence)
    if broken or (check and beyond):
        raise typer.Exit(1)


def default_clock(device: str) -> Clock:
    """A CPU that others use too is better timed without real time."""
    from ..scenarios.real_setup import real_engine_asked

    with real_engine_asked():
        from ..real_engine.devices import find_device

        return Clock.WALL if find_device(device).is_gpu else Clock.VIRTUAL
