"""`llmsim calibrate fit-run`: efficiencies, overheads and residuals out of measured runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..calibrate.runs.formats import read_run
from ..calibrate.runs.measured_run import MeasuredRun
from ..scenarios.assembly import Assembly, assemble
from ..scenarios.studies import fit_run as study
from ..scenarios.studies.measured_scenario import scenario_of
from ..scenarios.studies.run_parts import Part, Warmup
from ..scenarios.studies.validate import assumptions, values_text
from ..scenarios.studies.validation_table import errors_table
from .calibrate_validate import Profile, RunScenario, WarmupOption
from .options import AsJson, Overrides
from .speech import people, print_json, say, warn


def fit_run(
    measured: Annotated[
        list[Path],
        typer.Option("--run", help="A measured run, as of validate; may be given again.", show_default=False),
    ],
    profile: Profile = None,
    scenario: RunScenario = None,
    overrides: Overrides = None,
    names: Annotated[
        str | None,
        typer.Option("--fit", help="What to fit: weights, kv, bf16, attention, host_step_s, residual, … with commas."),
    ] = None,
    requests: Annotated[
        str | None, typer.Option(help="Fit on first:150, last:150, odd or even, try on the others.", show_default=False)
    ] = None,
    tests: Annotated[
        list[Path] | None,
        typer.Option("--test", help="A run to try the fit on; may be given again.", show_default=False),
    ] = None,
    warmup: WarmupOption = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the fitted hardware here, as YAML.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output where it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fit an analytic GPU, or a profile's residuals, to benchmark results; report the error on what was not fitted.

    It is refused, with the reason, where the runs cannot tell two of the parameters apart. The file that -o writes can
    be given to validate and fit-run as --scenario.

    Example: llmsim calibrate fit-run --run bench.json --set hardware.gpu=h100-sxm --requests odd -o fitted.yaml
    """
    part = None if requests is None else Part.parsed(requests, "--requests")
    until = Warmup.parsed(warmup)
    if output is not None:
        study.check_hardware(output, force=force)

    def prepared(path: Path, overrides: list[str], scenario: Path | None) -> tuple[MeasuredRun, Assembly]:
        run = read_run(path)
        assembly = assemble(scenario_of(run, scenario, overrides, profile), warn)
        for assumed in assumptions(run, assembly):
            warn(f"{path}: {assumed}")
        return run, assembly

    trials = [prepared(path, overrides or [], scenario) for path in measured]
    tried_on = [prepared(path, study.of_engine(overrides or []), None) for path in tests or []]
    fitted = study.fit_run(trials, tried_on, study.parameter_names(names, trials[0][1]), part, until, warn)
    for one in [*fitted.seen, *fitted.unseen]:
        people.print(errors_table(f"{one.what}: {one.num_requests} requests", one.errors))
    say(f"fitted: {values_text(fitted.found.values)}")
    if output is not None:
        study.write_hardware(fitted, output, force=force)
        say(f"hardware in {output}")
    if as_json:
        print_json(fitted.as_json())
