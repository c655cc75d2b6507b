"""`llmsim profile`: time the real engine's kernels and steps on a device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..scenarios.device import RealDtype
from ..scenarios.progress import StudyProgress
from ..scenarios.real_options import Kernels
from ..scenarios.studies.profile_device import ProfileStudy
from ..scenarios.studies.profile_setup import GridName, Wishes
from .options import AsJson
from .speech import people, print_json, say, warn


def profile(
    model: Annotated[
        str, typer.Option(help="A known model, a model's folder, or its config.json; weights are random.")
    ],
    device: Annotated[
        str, typer.Option(help="cpu, cuda, cuda:1 …; a GPU where there is one if left out.", show_default=False)
    ] = "auto",
    grid: Annotated[
        GridName | None,
        typer.Option(help="Which shapes; small where left out, on a GPU full.", show_default=False),
    ] = None,
    dtype: Annotated[
        RealDtype | None,
        typer.Option(help="Of weights, activations and KV; fp32 where left out, on a GPU bf16.", show_default=False),
    ] = None,
    kernels: Annotated[Kernels, typer.Option(help="Whose kernels.")] = Kernels.AUTO,
    threads: Annotated[int, typer.Option(min=1, help="Of a CPU, those that compute.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Draws the order, and the whole steps.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The table's folder; profiles/MODEL where left out.", show_default=False),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Begin anew, whatever profile the folder holds, finished or not.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Time every kernel and whole steps of the real engine, as a table for `llmsim calibrate fit`.

    Points are kept as they come: the same command goes on where a killed one was.

    Example: llmsim profile --model tiny --device cpu -o table
    """
    wishes = Wishes(model, device, grid, dtype, kernels, threads, seed)
    folder = output or Path("profiles") / Path(model).stem
    study = ProfileStudy(wishes, folder, force=force, warn=warn)
    if study.num_done:
        say(f"{folder}: {study.num_done:,} of {study.num_visits:,} visits are there already")
    with StudyProgress(people, study.num_visits, study.num_done, "visits") as progress:
        profiled = study.run(progress.advance)
    header = profiled.header
    if header.out_of_memory:
        warn(
            f"out of memory: {len(header.out_of_memory)} steps, the first {header.out_of_memory[0]}; they are left out"
        )
    if profiled.noise:
        warn(profiled.noise)
    say(f"{header.name} on {header.device}: {profiled.num_timings:,} timings, {profiled.num_steps:,} whole steps")
    say(f"table in {folder}; next: llmsim calibrate fit {folder} -o PROFILE")
    if as_json:
        figures = {"num_timings": profiled.num_timings, "num_steps": profiled.num_steps, "noise": profiled.noise}
        print_json(header.model_dump(mode="json") | figures | {"folder": str(folder)})
