"""What a fit found, as a table for people and as one JSON object."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table

from ..sim.cost_model.fit_section import Errors, Fit
from ..sim.cost_model.profile import Profile
from ..sim.cost_model.profile_header import ProfileHeader, Residuals
from .step_residual import KINDS


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


def found_lines(header: ProfileHeader) -> list[str]:
    """What a header says beside its curves, a line each: residuals that no table shows, and what else prices steps."""
    lines = (residual_line(header), groups_line(header), unequal_line(header), shared_line(header))
    return [line for line in lines if line is not None]


def residual_line(header: ProfileHeader) -> str | None:
    """What steps take beyond their kernels, of those kinds that `steps_table` has no line for."""
    shown = header.fit.whole_steps if header.fit is not None else {}
    texts = {kind: _residual(header.residual, kind) for kind in KINDS if kind not in shown}
    said = [f"{kind} {text}" for kind, text in texts.items() if text != "none"]
    return f"residual of steps beyond their kernels: {', '.join(said)}" if said else None


def groups_line(header: ProfileHeader) -> str | None:
    """The groups in which a CPU multiplies the rows of linear layers."""
    groups = [f"{kernel} {len(extra)} ({max(extra):,.1f} us)" for kernel, extra in header.row_groups.items()]
    return f"groups of rows (and what those left over cost at most): {', '.join(groups)}" if groups else None


def unequal_line(header: ProfileHeader) -> str | None:
    """What attention costs beyond that of equal contexts of the same mean; None where nothing says so."""
    found, fit = header.unequal_contexts, header.fit
    alone = [f"{found.decode_alpha:.1%} of longest - mean"] * bool(found.decode_alpha)
    alone += [f"{found.decode_us:,.1f} us a launch"] * bool(found.decode_us)
    alone += [f"{found.decode_each_us:,.1f} us a decode"] * bool(found.decode_each_us)
    said = [f"decodes {' + '.join(alone)}{'' if found.applied else ' (not applied)'}"] * bool(alone)
    said += [f"beside a prefill {found.mixed_alpha:.1%} of longest - mean"] * bool(found.mixed_alpha)
    if not said:
        return None
    line = f"unequal contexts cost more: {', '.join(said)}"
    if fit is None or fit.unequal_contexts_error is None:
        return line
    before, after = fit.unequal_contexts_error
    return f"{line}; attention of them is off by {after:.1%}, else by {before:.1%}"


def shared_line(header: ProfileHeader) -> str | None:
    """What decodes pay for context that others have in the same blocks; None where that is not known."""
    alpha, fit = header.shared_contexts.alpha, header.fit
    errors = fit.shared_contexts_error if fit is not None else None
    if errors is None and not alpha:
        return None
    price = f"context in the same KV blocks costs {1 - alpha:.0%} of the first reading again"
    if errors is None:
        return price
    before, after = errors
    return f"{price}; left out, what a step saves by it is off by {after:.1%} of the step, else by {before:.1%}"


def _residual(residual: Residuals, kind: str) -> str:
    share, constant_s = getattr(residual, f"{kind}_share"), getattr(residual, f"{kind}_s")
    words = [f"{share:+.1%}"] * bool(share) + [f"{constant_s * 1e3:+.3f} ms"] * bool(constant_s)
    return " ".join(words) or "none"


def _cells(errors: Errors | None) -> tuple[str, str, str]:
    if errors is None:
        return "-", "-", "-"
    return f"{errors.points:,}", f"{errors.median:.1%}", f"{errors.p95:.1%}"
