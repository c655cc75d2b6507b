"""`llmsim calibrate`: what makes the simulator predict a real engine, and how far it is from one."""

from __future__ import annotations

import typer

from .calibrate_fit_run import fit_run
from .calibrate_validate import validate

calibrate = typer.Typer(rich_markup_mode=None)


@calibrate.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """Compare the simulator with measured runs of real engines, and fit it to them.

    Example: llmsim calibrate validate --run measured/run --set hardware.gpu=rtx-4090
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


calibrate.command()(validate)
calibrate.command("fit-run")(fit_run)
