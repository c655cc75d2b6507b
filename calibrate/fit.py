"""From a table of timings to a profile: checked, each shape once, with grid limits and held-out errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from pydantic import ValidationError

from ..policies.core import specs
from ..sim.cost_model.attention import attention_of
from ..sim.cost_model.fit_section import Fit, KernelFit
from ..sim.cost_model.kernel_floors import KernelFloors
from ..sim.cost_model.profile import Profile, gpu_of
from ..sim.cost_model.profile_header import AttentionLaunches, ProfileHeader, UnequalContexts
from ..sim.cost_model.separate_attention import SeparateAttention
from ..sim.cost_model.tile_curve import GEMMS
from ..sim.cost_model.timings import SHAPES, ProfileError, Shape, Timing
from .checks import check_timings, merged
from .held_out import SHARE, errors_of, held_out_errors
from .holes import fill
from .row_groups import best_group, rows_left_over
from .shared import fit_shared
from .step_residual import fit_residual
from .tiles import best_tile
from .unequal import fit_alone, fit_unequal
from .whole_steps import WholeStep


def checked(table: Profile) -> list[Timing]:
    """The table's timings, each shape once; ProfileError names the row that cannot be, and why."""
    if not table.timings:
        raise ProfileError(f"{table.path}: has no timings")
    check_timings(table.timings, floors_of(table.header))
    return merged(table.timings)


def fit(table: Profile, seed: int = 0, *, correct_unequal: bool = False, steps: Sequence[WholeStep] = ()) -> Profile:
    """The profile of a table; ProfileError where the table has a fault. The same seed holds out the same points.

    Timings of unequal contexts go into the correction, which steps get if asked for, and are not kept; so a profile is
    not fitted again. Whole `steps` give the residual, and those of them that differ in nothing but blocks in common
    what these save; without them both are as the table says.
    """
    if table.header.fit is not None:
        raise ProfileError(f"{table.path}: is a fitted profile already; fit takes a table of timings")
    try:
        fitted = _fitted(table, seed, steps, correct_unequal=correct_unequal)
        ProfileHeader.model_validate(fitted.header.model_dump())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        found = f"{first['loc'][-1]} comes to {first['input']}: {first['msg']}"
        raise ProfileError(f"{table.path}: its times cannot be fitted: {found}") from None
    return fitted


def _fitted(table: Profile, seed: int, steps: Sequence[WholeStep], *, correct_unequal: bool) -> Profile:
    """The same, whatever the coefficients come to."""
    timings, floors = checked(table), floors_of(table.header)
    by_kernel = {kernel: [timing for timing in timings if timing.kernel == kernel] for kernel in SHAPES}
    kernels: dict[str, KernelFit] = {}
    errors: list[float] = []
    for kernel, measured in by_kernel.items():
        if measured:
            rng = np.random.default_rng([seed, len(kernels)])
            kernels[kernel], found = _kernel_fit(kernel, measured, floors, rng, table.header)
            errors += found
    overall = errors_of(errors)
    if overall is None:
        raise ProfileError(f"{table.path}: no kernel has points enough to hold any out")
    holes = _filled(by_kernel["attention"])
    kernels["attention"] = kernels["attention"].model_copy(update={"filled": len(holes)})
    correction, correction_error = _unequal(by_kernel["attention"], holes, floors, table.header.attention)
    whole = Fit(
        seed=seed, held_out_share=SHARE, held_out=overall, kernels=kernels, unequal_contexts_error=correction_error
    )
    applied = correct_unequal or table.header.unequal_contexts.applied
    linear = {kernel: _points(by_kernel[kernel]) for kernel in GEMMS if by_kernel[kernel]}
    groups = _row_groups(linear) if _is_cpu(table.header) else {}
    update = {
        "fit": whole,
        "row_groups": groups,
        "tiles": {kernel: best_tile(points) for kernel, points in linear.items() if kernel not in groups},
        "unequal_contexts": correction.model_copy(update={"applied": applied}),
    }
    equal = [timing for timing in timings if timing.kernel != "attention" or timing.shape[4] <= timing.shape[3]]
    fitted = Profile(table.header.model_copy(update=update), [*equal, *holes], table.path)
    return _held_against(fitted, whole, steps, seed) if steps else fitted


def _is_cpu(header: ProfileHeader) -> bool:
    """Whether threads computed, and a library for matrices on a CPU with them."""
    return header.threads is not None


def _row_groups(linear: Mapping[str, Mapping[Shape, float]]) -> dict[str, tuple[float, ...]]:
    """Of the linear layers whose points groups of rows explain, what rows left over take."""
    groups = {kernel: best_group(points) for kernel, points in linear.items()}
    found = {kernel: rows_left_over(linear[kernel], group) for kernel, group in groups.items() if group is not None}
    return {kernel: extra for kernel, extra in found.items() if extra is not None}


def _held_against(fitted: Profile, whole: Fit, steps: Sequence[WholeStep], seed: int) -> Profile:
    """The profile with what whole steps say: a residual, and what context in the same blocks saves."""
    residual, errors = fit_residual(fitted, [step for step in steps if not step.shape.shared_tokens], seed)
    header = fitted.header.model_copy(update={"residual": residual})
    shared, shared_error = fit_shared(replace(fitted, header=header), steps)
    found = whole.model_copy(update={"whole_steps": errors, "shared_contexts_error": shared_error})
    return replace(fitted, header=header.model_copy(update={"shared_contexts": shared, "fit": found}))


def floors_of(header: ProfileHeader) -> KernelFloors:
    """The roofline of the kernels that a header describes."""
    try:
        gpu = gpu_of(header)
    except specs.UnknownName as error:
        raise ProfileError(f"profile of {header.name}: gpu: {error}") from None
    return KernelFloors(header.model.model(), gpu, header.tensor_parallel, header.kv_dtype_bytes)


def _kernel_fit(
    kernel: str, timings: Sequence[Timing], floors: KernelFloors, rng: np.random.Generator, header: ProfileHeader
) -> tuple[KernelFit, list[float]]:
    """A kernel's part of the report, and the errors of what was held out."""
    points = _equal(timings) if kernel == "attention" else _points(timings)
    derived = {timing.shape[:4] for timing in timings if timing.repeats == 0}
    found = held_out_errors(kernel, points, floors, rng, derived, header.attention, in_groups=_is_cpu(header))
    columns = zip(*points, strict=True)
    grid = {name: (min(xs), max(xs)) for name, xs in zip(SHAPES[kernel], columns, strict=False)}
    mixed = [error for shape, error in found.items() if kernel == "attention" and shape[0] and shape[2]]
    errors = list(found.values())
    report = KernelFit(
        points=len(points), derived=len(derived), grid=grid, held_out=errors_of(errors), held_out_mixed=errors_of(mixed)
    )
    return report, errors


def _points(timings: Sequence[Timing]) -> dict[Shape, float]:
    return {timing.shape: timing.time_us for timing in timings}


def _equal(attention: Sequence[Timing]) -> dict[Shape, float]:
    """Times by the four coordinates of attention with equal contexts."""
    return {t.shape[:4]: t.time_us for t in attention if t.shape[4] <= t.shape[3]}


def _filled(attention: Sequence[Timing]) -> list[Timing]:
    """The holes of attention's grid, as timings without a measurement behind them."""
    holes = fill(_equal(attention))
    return [Timing("attention", (*shape, shape[3]), us, "filled", repeats=0) for shape, us in sorted(holes.items())]


def _unequal(
    attention: Sequence[Timing], holes: Sequence[Timing], floors: KernelFloors, launched: AttentionLaunches
) -> tuple[UnequalContexts, tuple[float, float] | None]:
    unequal = {t.shape: t.time_us for t in attention if t.shape[4] > t.shape[3]}
    curve = attention_of(launched, _equal([*attention, *holes]), floors.attention_us)
    return fit_alone(unequal, curve) if isinstance(curve, SeparateAttention) else fit_unequal(unequal, curve)
