"""`llmsim calibrate show`: what a profile holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..calibrate.given import read_given
from ..calibrate.report import fit_heading, fit_report, fit_table, found_lines, steps_table
from ..scenarios.writable import check_file
from .options import AsJson
from .speech import people, print_json, say


def show(
    profile: Annotated[
        Path, typer.Argument(help="A profile's or table's folder, or a name of list profiles.", show_default=False)
    ],
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
    table = read_given(profile)
    say(fit_heading(table))
    if table.header.fit is not None:
        people.print(fit_table(table.header.fit))
        if table.header.fit.whole_steps:
            people.print(steps_table(table.header.fit, table.header.residual))
    for line in found_lines(table.header):
        say(line)
    if output is not None:
        from ..calibrate.picture import draw_profile

        draw_profile(table, output)
        say(f"picture in {output}")
    if as_json:
        print_json(fit_report(table))
