"""`llmsim list`: what a scenario can name."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from ..scenarios.listings import gpu_table, known_names, model_table, policy_table
from .options import AsJson
from .speech import print_json


def list_known(
    what: Annotated[str, typer.Argument(help="models, gpus or policies", metavar="models|gpus|policies")],
    as_json: AsJson = False,
) -> None:
    """List the models, GPUs or policies that a scenario can name.

    Example: llmsim list policies
    """
    tables = {"models": model_table, "gpus": gpu_table, "policies": policy_table}
    if what not in tables:
        raise typer.BadParameter(f"'{what}' is unknown; choose {', '.join(tables)}")
    if as_json:
        print_json(known_names(what))
    else:
        Console(highlight=False).print(tables[what]())
