"""The program `llmsim` and its commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer

from .. import __version__
from .lazy import Command, LazyGroup

COMMANDS = {
    "run": Command("run.run", "Run a scenario and write a result folder."),
    "check": Command("check.check", "Check a scenario without running it."),
    "describe": Command("describe.describe", "Say in plain words what a scenario asks of the engine."),
    "import": Command("importing.import_command", "Make a scenario of vLLM's or SGLang's command lines."),
    "workload": Command("workload.workload", "Describe a scenario's traffic, or fit some to a trace."),
    "cache": Command("cache.cache", "Hit rates of a prefix cache by size and eviction policy."),
    "sweep": Command("sweep.sweep", "Run a scenario under every combination of values."),
    "compare": Command("compare.compare", "Compare two results of the same traffic."),
    "plot": Command("plot.plot", "Draw a result."),
    "list": Command("listing.list_known", "List models, GPUs, profiles or policies."),
    "policies": Command("policies.policies", "Look at one policy."),
    "profile": Command("profile.profile", "Time the real engine's kernels on a device."),
    "calibrate": Command("calibrate.calibrate", "Latency curves from timings, held against real runs."),
    "schema": Command("schema.schema", "Print the JSON Schema of scenarios, for editors."),
    "decisions": Command("decisions.decisions", "Drive the engine core step by step, without time."),
    "replay": Command("replay.replay", "Feed a run's journal to a fresh engine core."),
    "generate": Command("generate.generate_command", "Answer prompts in text, on the real engine."),
}
"""By name, in the order of the list."""


class Commands(LazyGroup):
    """All of them."""

    table: ClassVar[Mapping[str, Command]] = COMMANDS


app = typer.Typer(
    name="llmsim",
    cls=Commands,
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
