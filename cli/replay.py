"""`llmsim replay`: a run's journal through a fresh core."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..scenarios import replaying
from .options import AsJson
from .speech import print_json, say


def replay(
    journal: Annotated[
        Path, typer.Argument(help="A result folder of a run with --journal, or its journal.", show_default=False)
    ],
    folder: Annotated[
        Path | None,
        typer.Option("--from", help="Where policies of one's own lie: the scenario's folder.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Feed a run's journal to a fresh core: every plan and token time must come out the same.

    Example: llmsim replay results/agent-001
    """
    replayed = replaying.replay(journal, folder)
    difference = replayed.difference
    if difference is not None:
        say(f"{replayed.journal}: {difference}")
    else:
        say(f"{replayed.num_plans:,} plans and {replayed.num_finished:,} finished requests are identical")
    if as_json:
        counts = {"num_plans": replayed.num_plans, "num_finished": replayed.num_finished}
        print_json({"identical": difference is None, "difference": difference, **counts})
    if difference is not None:
        raise typer.Exit(1)
