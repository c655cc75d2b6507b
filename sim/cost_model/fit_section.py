"""The section `fit` of a profile's header: what the fit found."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .header_parts import Count, Positive, RelativeError, Section


class Errors(Section):
    """|predicted - measured| / measured of points that a curve was not given."""

    points: Positive
    median: RelativeError
    p95: RelativeError


class KernelFit(Section):
    """A kernel's curve: how many points, from where to where, and how it fared without a fifth of them."""

    points: Positive
    derived: Count = 0
    """Of the points, those that were not measured but made from other sizes' at import."""
    filled: Count = 0
    """Holes of the grid that the fit filled, beside the points."""
    grid: dict[str, tuple[int, int]]
    """Smallest and largest of each shape column; beyond them times are extrapolated."""
    held_out: Errors | None = None
    """None: too few points to leave any out."""
    held_out_mixed: Errors | None = None
    """Of attention, the points that hold prefill and decodes together."""


class StepFit(Section):
    """Whole steps of a kind, of those that the residual was not fitted to: how far the sum of their kernels is off."""

    kernels_alone: Errors
    with_residual: Errors


class Fit(Section):
    """What the fit found."""

    seed: Annotated[int, Field(ge=0)]
    held_out_share: Annotated[float, Field(ge=0, le=1)]
    held_out: Errors
    """Over all kernels."""
    kernels: dict[str, KernelFit]
    whole_steps: dict[Literal["decode", "prefill", "mixed"], StepFit] = Field(default_factory=dict)
    """By what they hold, where the table has whole steps."""
    unequal_contexts_error: tuple[RelativeError, RelativeError] | None = None
    """Mean |error| over steps of unequal contexts, without the correction and with it."""
    shared_contexts_error: tuple[RelativeError, RelativeError] | None = None
    """Mean |error| of what a step of decodes saves by context in the same blocks, as a share of the step, likewise."""
