"""`llmsim replay`: a run's journal through a fresh core."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..policies.core.journal import Replay, read_journal
from ..scenarios.run import JOURNAL
from .options import AsJson
from .speech import print_json, say


def replay(
    journal: Annotated[
        Path, typer.Argument(help="A result folder of a run with --journal, or its journal.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Feed a run's journal to a fresh core: every plan and token time must come out the same.

    Example: llmsim replay results/agent-001
    """
    journal = journal / JOURNAL if (journal / JOURNAL).is_file() else journal
    replayed = Replay(read_journal(journal), str(journal))
    difference = replayed.run()
    if difference is not None:
        say(f"{journal}: {difference}")
    else:
        say(f"{replayed.num_plans:,} plans and {replayed.num_finished:,} finished requests are identical")
    if as_json:
        counts = {"num_plans": replayed.num_plans, "num_finished": replayed.num_finished}
        print_json({"identical": difference is None, "difference": difference, **counts})
    if difference is not None:
        raise typer.Exit(1)
