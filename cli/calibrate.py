"""`llmsim calibrate`: from kernel timings to profiles that price steps; measured runs, and errors on them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..calibrate.fit import checked
from ..calibrate.fit import fit as fit_table_of
from ..calibrate.importers import import_timings
from ..calibrate.importers.request import ImportRequest
from ..calibrate.noise import noise_warning
from ..calibrate.picture import draw_profile
from ..calibrate.report import fit_heading, fit_report, fit_table, steps_table
from ..calibrate.whole_steps import read_steps
from ..calibrate.writing import check_target, write_profile
from ..scenarios.writable import check_file, check_folder
from ..sim.cost_model.profile import read_table
from .calibrate_fit_run import fit_run
from .calibrate_loop import loop
from .calibrate_validate import validate
from .options import AsJson
from .speech import people, print_json, say, warn

calibrate = typer.Typer(rich_markup_mode=None)

Force = Annotated[bool, typer.Option("--force", help="Replace a profile or table that is there already.")]


@calibrate.callback()
def root() -> None:
    """Latency curves from measured kernels: import, fit, look at them; compare with measured runs, fit to those.

    Example: llmsim calibrate import bundle -o table
    """


@calibrate.command("import")
def import_table(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder of LLMServingSim's or Vidur's timings, or aiconfigurator:SYSTEM[/BACKEND[/VERSION]].",
            metavar="SOURCE",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The table's folder.", show_default=False)],
    model: Annotated[
        str | None,
        typer.Option(help="Where the source does not say: a model's name or its config.json.", show_default=False),
    ] = None,
    gpu: Annotated[str | None, typer.Option(help="Where the source does not say.", show_default=False)] = None,
    tensor_parallel: Annotated[
        int | None, typer.Option(min=1, help="Where the source has several degrees.", show_default=False)
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Turn somebody's kernel timings into a table of one format, checked row by row.

    Example: llmsim calibrate import RTX4090-llama3.1-8b -o table
    """
    check_target(output, force=force)
    check_folder(output)
    table = import_timings(ImportRequest(source, model, gpu, tensor_parallel))
    timings = checked(table)
    write_profile(output, table.header, timings, force=force)
    say(f"{fit_heading(table)}: {len(timings):,} timings in {output}; next: llmsim calibrate fit {output} -o PROFILE")
    if as_json:
        print_json({**fit_report(table), "num_timings": len(timings)})


@calibrate.command()
def fit(
    table: Annotated[Path, typer.Argument(help="A table's folder, or its profile.yaml.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The profile's folder.", show_default=False)],
    seed: Annotated[int, typer.Option(min=0, help="Draws the points that are held out.")] = 0,
    unequal_contexts: Annotated[
        bool, typer.Option("--unequal-contexts", help="Let decodes alone be corrected for unequal contexts too.")
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Fit a table: curves that return its points exactly, and their errors on a held-out fifth of the points.

    Example: llmsim calibrate fit table -o profile
    """
    check_target(output, force=force)
    check_folder(output)
    read = read_table(table)
    profile = fit_table_of(read, seed, correct_unequal=unequal_contexts, steps=read_steps(read.path))
    write_profile(output, profile.header, profile.timings, force=force)
    assert profile.header.fit is not None
    say(fit_heading(profile))
    people.print(fit_table(profile.header.fit))
    if profile.header.fit.whole_steps:
        people.print(steps_table(profile.header.fit, profile.header.residual))
    if noise := noise_warning(read.timings):
        warn(noise)
    say(f"profile in {output}; in a scenario: hardware: {{profile: {output}}}")
    if as_json:
        print_json(fit_report(profile))


@calibrate.command()
def show(
    profile: Annotated[Path, typer.Argument(help="A profile's or table's folder.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Draw the curves here, as a PNG.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a profile holds: curves against points and floor as a picture, and the errors of the fit.

    Example: llmsim calibrate show profile -o profile.png
    """
    if output is not None:
        check_file(output)
    table = read_table(profile)
    say(fit_heading(table))
    if table.header.fit is not None:
        people.print(fit_table(table.header.fit))
    if output is not None:
        draw_profile(table, output)
        say(f"picture in {output}")
    if as_json:
        print_json(fit_report(table))


calibrate.command()(validate)
calibrate.command("fit-run")(fit_run)
calibrate.command()(loop)
