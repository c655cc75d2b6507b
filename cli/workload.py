"""`llmsim workload`: a scenario's traffic without running it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..scenarios.assembly import assemble
from ..scenarios.loading import load_scenario
from ..scenarios.traffic_picture import draw_traffic
from ..scenarios.traffic_report import observe, traffic_report
from ..scenarios.traffic_tables import print_traffic
from .options import AsJson, Overrides, ScenarioPath
from .speech import people, print_json, say, warn


def workload(
    scenario: ScenarioPath,
    overrides: Overrides = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Draw the traffic here, as a PNG.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Describe a scenario's traffic without running it: lengths, arrivals, how much prompts share, a picture.

    Example: llmsim workload scenarios/agent.yaml -o traffic.png
    """
    traffic = observe(assemble(load_scenario(scenario, overrides or [])), warn)
    report = traffic_report(traffic)
    print_traffic(report, people)
    if output is not None:
        draw_traffic(traffic, output)
        say(f"picture in {output}")
    if as_json:
        print_json(report)
