"""`llmsim calibrate validate`: a measured run simulated again, and the errors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..calibrate.runs.formats import KNOWN, read_run
from ..scenarios.assembly import assemble
from ..scenarios.studies import validate as study
from ..scenarios.studies.bounds import Bound, exceeded
from ..scenarios.studies.measured_scenario import scenario_of
from ..scenarios.studies.run_parts import Part, Warmup, parsed_seconds
from ..scenarios.studies.validation_table import validation_tables
from ..scenarios.writable import check_file
from .options import AsJson, Overrides
from .speech import people, print_json, say, warn

Profile = Annotated[
    Path | None, typer.Option("--profile", help="A fitted profile whose curves price steps.", show_default=False)
]
RunScenario = Annotated[
    Path | None,
    typer.Option(
        "--scenario", help="A YAML that says what the run does not; its workload is not used.", show_default=False
    ),
]
WarmupOption = Annotated[
    str | None,
    typer.Option(
        "--warmup", help="Scored apart: the first 7 requests, or 1.5s; 1s where left out.", show_default=False
    ),
]


def validate(
    measured: Annotated[Path, typer.Option("--run", help=f"{KNOWN[0].upper()}{KNOWN[1:]}.", show_default=False)],
    profile: Profile = None,
    scenario: RunScenario = None,
    overrides: Overrides = None,
    warmup: WarmupOption = None,
    fit_residual: Annotated[
        str | None,
        typer.Option(help="Fit a residual a type of step on first:150, last:150, odd or even, score the others."),
    ] = None,
    cold_start: Annotated[
        str | None,
        typer.Option(
            help="Host time of the first steps in s, with commas, or none; told by the warm-up where left out.",
            show_default=False,
        ),
    ] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(help="Exit 1 beyond this error: 0.05, ttft=0.16, ttft.p50=0.16.", metavar="BOUND"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Draw it here, as a PNG.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate a measured run: same requests, measured arrivals, same settings; print measured, simulated, error.

    Settings come from --set, else from --scenario, else from the run itself. The exit code is 1 where an error is
    beyond a bound of --within.

    Example: llmsim calibrate validate --run measured/run --set hardware.gpu=rtx-4090 --within 0.2 -o run.png
    """
    bounds = [Bound.parsed(text) for text in within or []]
    part = None if fit_residual is None else Part.parsed(fit_residual, "--fit-residual")
    until, cold = Warmup.parsed(warmup), parsed_seconds(cold_start, "--cold-start")
    if output is not None:
        check_file(output)
    run = read_run(measured)
    assembly = assemble(scenario_of(run, scenario, overrides or [], profile), warn)
    for assumed in study.assumptions(run, assembly):
        warn(assumed)
    validation = study.validate(run, assembly, until, part, warn, cold)
    people.print(validation_tables(validation))
    if validation.fitted is not None:
        say(f"fitted: {study.values_text(validation.fitted.values)}")
    if output is not None:
        from ..scenarios.studies.validation_picture import draw_validation

        draw_validation(validation, output)
        say(f"picture in {output}")
    wrong = exceeded(bounds, validation.errors)
    if as_json:
        print_json({**validation.as_json(), "exceeded": wrong})
    for sentence in wrong:
        warn(sentence)
    if wrong:
        raise typer.Exit(1)
