"""`llmsim calibrate`: from kernel timings to profiles that price steps; measured runs, and errors on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from .lazy import Command, LazyGroup


class Calibrations(LazyGroup):
    """Its commands."""

    table: ClassVar[Mapping[str, Command]] = {
        "import": Command("calibrate_import.import_table", "Turn somebody's kernel timings into a table."),
        "fit": Command("calibrate_fit.fit", "Fit a table: curves, and their errors on held-out points."),
        "show": Command("calibrate_show.show", "Show what a profile holds."),
        "validate": Command("calibrate_validate.validate", "Simulate a measured run, and how far off that is."),
        "fit-run": Command("calibrate_fit_run.fit_run", "Fit efficiencies and overheads to measured runs."),
        "loop": Command("calibrate_loop.loop", "Profile a device, predict a run, carry it out, compare."),
    }


calibrate = typer.Typer(cls=Calibrations, rich_markup_mode=None)


@calibrate.callback()
def root() -> None:
    """Latency curves from measured kernels: import, fit, look at them; compare with measured runs, fit to those.

    Example: llmsim calibrate import bundle -o table
    """
