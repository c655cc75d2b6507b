"""Whether timings can be: units, duplicates, grids. What cannot be is refused with the row and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from ..sim.cost_model.kernel_floors import KernelFloors
from ..sim.cost_model.timings import SHAPES, ProfileError, Timing

AGREE = 0.25
"""Two timings of one shape that differ by more are not two measurements of one thing."""
LEAST_US = 0.3
"""No launch is shorter: an empty kernel takes longer, on any GPU."""
BELOW_FLOOR = 5.0
"""Small working sets stay in a cache and beat the memory's floor, but never by as much."""
LAUNCH_US = 20.0
ABOVE_FLOOR = 60.0
"""Slow kernels of small shapes are latency-bound: the bound is on the time over floor and launch together."""


def merged(timings: Iterable[Timing]) -> list[Timing]:
    """Each shape of a kernel once, the median where it stands several times; ProfileError where those disagree."""
    groups: dict[tuple[str, tuple[int, ...]], list[Timing]] = {}
    for timing in timings:
        groups.setdefault(timing[:2], []).append(timing)
    return [_one(group) for group in groups.values()]


def check_timings(timings: Sequence[Timing], floors: KernelFloors) -> None:
    """ProfileError at the first row that cannot be, and where a kernel's curve would hang on one point."""
    for timing in timings:
        _check_time(timing, floors)
    _check_grids(timings)


def _one(group: list[Timing]) -> Timing:
    if len(group) == 1:
        return group[0]
    low, high = min(group, key=lambda t: t.time_us), max(group, key=lambda t: t.time_us)
    if high.time_us > low.time_us * (1 + AGREE):
        later, earlier = (high, low) if group.index(high) > group.index(low) else (low, high)
        raise ProfileError(
            f"{later.where}: {later.time_us:g} us disagrees with {earlier.time_us:g} us of the same shape"
            f" in {earlier.where.rpartition(': ')[2]}"
        )
    return group[0]._replace(time_us=median(timing.time_us for timing in group))


def _check_time(timing: Timing, floors: KernelFloors) -> None:
    name, shape, time_us, where = timing[:4]
    if name != "attention" and not shape[0]:
        raise ProfileError(f"{where}: {name} has no {SHAPES[name][0]}")
    if name == "attention" and not (shape[0] or shape[2]):
        raise ProfileError(f"{where}: attention has neither q_tokens nor num_decodes")
    try:
        floor_us = floors.floor_us(name, shape)
    except KeyError:
        model = floors.transformer.model.name
        raise ProfileError(f"{where}: {model}, so divided, has no kernel {name}") from None
    if time_us < max(LEAST_US, floor_us / BELOW_FLOOR):
        raise ProfileError(
            f"{where}: {name} takes {time_us:g} us where its floor is {max(floor_us, LEAST_US):.3g} us; is it in ms?"
        )
    if time_us > ABOVE_FLOOR * (floor_us + LAUNCH_US):
        raise ProfileError(f"{where}: {name} takes {time_us:g} us where its floor is {floor_us:.3g} us; is it in ns?")


def _check_grids(timings: Sequence[Timing]) -> None:
    shapes: dict[str, dict[tuple[int, ...], str]] = {}
    for timing in timings:
        shapes.setdefault(timing.kernel, {})[timing.shape] = timing.where
    for kernel, points in shapes.items():
        if len(points) == 1:
            (where,) = points.values()
            raise ProfileError(f"{where}: is the only point of {kernel}; a curve needs two")
    attention = shapes.get("attention", {})
    for noun, has in (("decodes alone", (0, 2)), ("prefill alone", (2, 0))):
        if not any(shape[has[1]] and not shape[has[0]] for shape in attention):
            where = next(iter(attention.values()), timings[0].where if timings else "the table")
            raise ProfileError(f"{where.rpartition(': ')[0] or where}: has no timing of attention with {noun}")
