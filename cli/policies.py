"""`llmsim policies show`: everything about one policy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..scenarios.policy_listing import named, policy_facts, policy_text
from .options import AsJson
from .speech import print_json

policies = typer.Typer(rich_markup_mode=None)


@policies.callback(invoke_without_command=True)
def about(context: typer.Context) -> None:
    """Look at one policy. (All of them: llmsim list policies.)

    Example: llmsim policies show eviction/lru
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


@policies.command()
def show(
    name: Annotated[str, typer.Argument(help="NAME, KIND/NAME, ./file.py:Class or module:Class.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Show a policy's description, its parameters with types and defaults, what it requires, and its file.

    Example: llmsim policies show fixed
    """
    item = named(name, (Path(),))
    if as_json:
        print_json(policy_facts(item))
        return
    for part in policy_text(item):
        Console(highlight=False).print(part, soft_wrap=True)
