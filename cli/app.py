"""The program `llmsim` and its commands, in the order in which its help lists them."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.core import TyperGroup

from .. import __version__
from .cache import cache
from .calibrate import calibrate
from .check import check
from .compare import compare
from .decisions import decisions
from .describe import describe
from .generate import generate_command
from .importing import import_command
from .listing import list_known
from .plot import plot
from .policies import policies
from .replay import replay
from .run import run
from .schema import schema
from .sweep import sweep
from .workload import workload


class CommandsInOrder(TyperGroup):
    """Lists groups among the commands: typer puts them last."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """All names."""
        names = super().list_commands(ctx)
        for group, before in (("workload", "sweep"), ("calibrate", "schema")):
            names.remove(group)
            names.insert(names.index(before), group)
        return names


app = typer.Typer(
    name="llmsim",
    cls=CommandsInOrder,
    help="What would an LLM inference engine do? A discrete-event simulator of schedulers, KV caches and policies.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="With any command: show the traceback of an error.")] = False,
) -> None:
    """What would an LLM inference engine do? A discrete-event simulator of schedulers, KV caches and policies."""
    if version:
        print(f"llmsim {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


app.command()(run)
app.command()(check)
app.command()(describe)
app.command("import")(import_command)
app.add_typer(workload, name="workload")
app.command()(cache)
app.command()(sweep)
app.command()(compare)
app.command()(plot)
app.command("list")(list_known)
app.add_typer(policies, name="policies")
app.add_typer(calibrate, name="calibrate")
app.command()(schema)
app.command()(decisions)
app.command()(replay)
app.command("generate")(generate_command)
