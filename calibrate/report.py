"""What a fit found, as a table for people and as one JSON object."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table

from ..sim.cost_model.fit_section import Errors, Fit
from ..sim.cost_model.profile import Profile
from ..sim.cost_model.profile_header import ProfileHeader, Residuals


def fit_report(profile: Profile) -> dict[str, Any]:
    """The header of a fitted profile as plain values."""
    return profile.header.model_dump(mode="json")


def fit_heading(profile: Profile) -> str:
    """What was measured on what, in a line."""
    header = profile.header
    gpus = f"{header.tensor_parallel} x " if header.tensor_parallel > 1 else ""
    return f"{header.name}: {header.model.name} on {gpus}{header.gpu}, {header.software}"


def fit_table(fit: Fit) -> Table:
    """A line a kernel: points, and errors of those that were held out."""
    share = f"held-out {fit.held_out_share:.0%}"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("kernel")
    for name in ("points", share, "median error", "P95"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, kernel in fit.kernels.items():
        table.add_row(name, f"{kernel.points:,}", *_cells(kernel.held_out))
        if kernel.held_out_mixed is not None:
            table.add_row("  prefill and decodes together", "", *_cells(kernel.held_out_mixed))
    table.add_section()
    table.add_row("all", f"{sum(kernel.points for kernel in fit.kernels.values()):,}", *_cells(fit.held_out))
    return table


def steps_table(fit: Fit, residual: Residuals) -> Table:
    """A line a kind of step: how far the sum of its kernels is off, without the residual and with it."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("whole steps", no_wrap=True)
    for name in ("held out", "error alone", "P95", "residual", "with it", "P95"):
        table.add_column(name, justify="right", no_wrap=True)
    for kind, found in fit.whole_steps.items():
        table.add_row(kind, *_cells(found.kernels_alone), _residual(residual, kind), *_cells(found.with_residual)[1:])
    return table


def shared_line(header: ProfileHeader) -> str | None:
    """What decodes pay for context that others have in the same blocks; None where that was not measured."""
    if header.fit is None or header.fit.shared_contexts_error is None:
        return None
    before, after = header.fit.shared_contexts_error
    price = f"context in the same KV blocks costs {1 - header.shared_contexts.alpha:.0%} of the first reading again"
    return f"{price}; left out, what a step saves by it is off by {after:.1%} of the step, else by {before:.1%}"


def _residual(residual: Residuals, kind: str) -> str:
    share, constant_s = getattr(residual, f"{kind}_share"), getattr(residual, f"{kind}_s")
    words = [f"{share:+.1%}"] * bool(share) + [f"{constant_s * 1e3:+.3f} ms"] * bool(constant_s)
    return " ".join(words) or "none"


def _cells(errors: Errors | None) -> tuple[str, str, str]:
    if errors is None:
        return "-", "-", "-"
    return f"{errors.points:,}", f"{errors.median:.1%}", f"{errors.p95:.1%}"
