"""`llmsim workload`: a scenario's traffic without running it, and synthetic traffic like a trace's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from ..scenarios.assembly import assemble
from ..scenarios.fitting.comparison import comparison_table
from ..scenarios.fitting.fit import MAX_ROWS, fit_trace, trace_scenario
from ..scenarios.loading import load_scenario
from ..scenarios.traffic_report import observe, traffic_report
from ..scenarios.traffic_tables import print_traffic
from ..scenarios.writable import check_file
from .options import AsJson, Overrides, ScenarioPath
from .speech import people, print_json, say, warn

DEFAULT = "describe"


class DescribesByDefault(TyperGroup):
    """A group whose first word need not be a command: what is none belongs to `describe`."""

    def with_command(self, arguments: list[str]) -> list[str]:
        """The arguments, with the command that they mean in front."""
        named = bool(arguments) and (arguments[0] in self.commands or arguments[0] == "--help")
        return arguments if named else [DEFAULT, *arguments]

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """As click does, once the command is named."""
        return super().parse_args(ctx, self.with_command(args))


workload = typer.Typer(cls=DescribesByDefault, rich_markup_mode=None)


@workload.callback()
def root() -> None:
    """Describe a scenario's traffic without running it; `workload fit` writes synthetic traffic like a trace's.

    `llmsim workload X.yaml` is short for `llmsim workload describe X.yaml`.

    Example: llmsim workload scenarios/agent.yaml -o traffic.png
    """


@workload.command(DEFAULT)
def describe(
    scenario: ScenarioPath,
    overrides: Overrides = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Draw the traffic here, as a PNG.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Describe a scenario's traffic without running it: lengths, arrivals, how much prompts share, a picture.

    Example: llmsim workload describe scenarios/agent.yaml -o traffic.png
    """
    if output is not None:
        check_file(output)
    traffic = observe(assemble(load_scenario(scenario, overrides or [])), warn)
    report = traffic_report(traffic)
    print_traffic(report, people)
    if output is not None:
        from ..scenarios.traffic_picture import draw_traffic

        draw_traffic(traffic, output)
        say(f"picture in {output}")
    if as_json:
        print_json(report)


@workload.command()
def fit(
    trace: Annotated[
        Path, typer.Argument(help="A trace, or a scenario's YAML whose workload is one.", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="The scenario to write, and two tables beside it.", show_default=False),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="The trace's format; told from its first line where left out.", show_default=False
        ),
    ] = None,
    overrides: Overrides = None,
    rows: Annotated[int, typer.Option(min=1, help="Most rows of a table.")] = MAX_ROWS,
    force: Annotated[bool, typer.Option("--force", help="Replace the files if they are there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a synthetic workload like a trace: lengths, arrivals, which prompts go on from which; then compare them.

    --set workload.rate=4, workload.limit=1000 or model=qwen3-8b say more about a trace that no scenario stands around.
    The exit code is 0 even where the table shows that the fit misses a bound.

    Example: llmsim workload fit conversation_trace.jsonl.gz -o fitted/conversation.yaml
    """
    scenario = trace_scenario(trace, form, overrides or [], say)
    fitted = fit_trace(scenario, output, force=force, warn=warn, max_rows=rows)
    people.print(comparison_table(f"{output.stem}, and the trace that it is like", fitted.statistics))
    say(fitted.reason)
    if missed := fitted.missed():
        warn(f"the fit misses the bound of {', '.join(statistic.name for statistic in missed)}")
    say(f"scenario in {output}")
    if as_json:
        print_json(fitted.as_json())
