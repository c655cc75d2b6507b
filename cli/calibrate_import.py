"""`llmsim calibrate import`: somebody's kernel timings as a table of one format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..calibrate.fit import checked
from ..calibrate.importers import import_timings
from ..calibrate.importers.request import ImportRequest
from ..calibrate.report import fit_heading, fit_report
from ..calibrate.writing import check_target, write_profile
from ..scenarios.writable import check_folder
from .options import AsJson, ForceProfile
from .speech import print_json, say


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
    force: ForceProfile = False,
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
