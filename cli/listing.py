"""`llmsim list`: what a scenario can name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.table import Table

from ..scenarios.listings import gpu_table, known_names, model_table, profile_table
from ..scenarios.policy_listing import listed, policies_json, policy_table, requirement_table
from .options import AsJson
from .speech import print_json, warn


def list_known(
    what: Annotated[
        str, typer.Argument(help="models, gpus, profiles or policies", metavar="models|gpus|profiles|policies")
    ],
    as_json: AsJson = False,
) -> None:
    """List the models, GPUs, profiles or policies that a scenario can name.

    Example: llmsim list policies
    """
    tables: dict[str, list[Callable[[], Table | Group]]] = {
        "models": [model_table],
        "gpus": [gpu_table],
        "profiles": [profile_table],
        "policies": [policy_table, requirement_table],
    }
    if what not in tables:
        raise typer.BadParameter(f"'{what}' is unknown; choose {', '.join(tables)}")
    if what == "policies":
        for wrong in listed()[1]:
            warn(wrong)
    if as_json:
        print_json(policies_json() if what == "policies" else known_names(what))
        return
    for table in tables[what]:
        Console(highlight=False).print(table())
