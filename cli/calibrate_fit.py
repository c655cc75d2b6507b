"""`llmsim calibrate fit`: a table of timings as curves, and their errors on points that were held out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..calibrate.fit import fit as fit_table_of
from ..calibrate.given import read_given
from ..calibrate.noise import noise_warning
from ..calibrate.report import fit_heading, fit_report, fit_table, found_lines, steps_table
from ..calibrate.whole_steps import read_steps
from ..calibrate.writing import check_target, write_profile
from ..scenarios.writable import check_folder
from .options import AsJson, ForceProfile
from .speech import people, print_json, say, warn


def fit(
    table: Annotated[Path, typer.Argument(help="A table's folder, or its profile.yaml.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The profile's folder.", show_default=False)],
    seed: Annotated[int, typer.Option(min=0, help="Draws the points that are held out.")] = 0,
    unequal_contexts: Annotated[
        bool, typer.Option("--unequal-contexts", help="Let decodes alone be corrected for unequal contexts too.")
    ] = False,
    force: ForceProfile = False,
    as_json: AsJson = False,
) -> None:
    """Fit a table: curves that return its points exactly, and their errors on a held-out fifth of the points.

    Example: llmsim calibrate fit table -o profile
    """
    check_target(output, force=force)
    check_folder(output)
    read = read_given(table)
    profile = fit_table_of(read, seed, correct_unequal=unequal_contexts, steps=read_steps(read.path))
    write_profile(output, profile.header, profile.timings, force=force)
    assert profile.header.fit is not None
    say(fit_heading(profile))
    people.print(fit_table(profile.header.fit))
    if profile.header.fit.whole_steps:
        people.print(steps_table(profile.header.fit, profile.header.residual))
    for line in found_lines(profile.header):
        say(line)
    if noise := noise_warning(read.timings):
        warn(noise)
    say(f"profile in {output}; in a scenario: hardware: {{profile: {output}}}")
    if as_json:
        print_json(fit_report(profile))
