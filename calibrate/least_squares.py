"""Least squares on what a simulator predicts, and whether the data can tell the parameters apart.

A simulator's answer jumps a little with every parameter, as requests change places: derivatives are taken over steps
that are large beside that, from both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..sim.columns import Floats

MAX_CONDITION = 20.0
"""Of the Jacobian with columns of length 1: two columns of correlation 0.995 have it."""
MIN_EFFECT = 1e-3
"""A parameter that moves the latencies by less than this on the whole, over its `step`, is not seen in them."""

Matrix = npt.NDArray[np.float64]


class Parameter(NamedTuple):
    """Something to be fitted."""

    name: str
    start: float
    step: float
    """A change of it that is large beside the noise of a simulation, and plausible."""
    lowest: float
    highest: float


class CannotTell(ValueError):
    """The data cannot tell what a parameter is, or two of them apart; says which."""


class Fitted(NamedTuple):
    """What a fit found."""

    values: dict[str, float]
    rms_before: float
    """Root mean square of the logarithms of simulated over measured."""
    rms_after: float
    condition: float
    """Of the Jacobian at the end."""
    at_bounds: tuple[str, ...] = ()
    """Parameters that would go on beyond what is plausible: the model lacks something."""


def fit(parameters: Sequence[Parameter], deviations: Callable[[dict[str, float]], Floats]) -> Fitted:
    """The values that make `deviations(values)` small: logarithms of simulated over measured.

    Single large ones count less (soft L1 beyond 10 %). Raises CannotTell where the deviations, at the start or at the
    end, do not depend on a parameter, or on two of them alike.
    """
    from scipy.optimize import least_squares  # takes a third of a second, and few commands fit anything

    names = [parameter.name for parameter in parameters]
    start = np.array([parameter.start for parameter in parameters])
    steps = np.array([parameter.step for parameter in parameters])

    known: dict[tuple[float, ...], Floats] = {}

    def at(scaled: Floats) -> Floats:
        values = tuple((start + scaled * steps).tolist())
        if values not in known:  # least_squares asks for some more than once
            known[values] = deviations(dict(zip(names, values, strict=True)))
        return known[values]

    bounds = [((p.lowest - p.start) / p.step, (p.highest - p.start) / p.step) for p in parameters]
    low, high = np.array(bounds).T

    def slopes(scaled: Floats) -> Matrix:
        return _slopes(at, scaled, low, high)

    before = at(np.zeros(len(names)))
    check_told_apart(names, slopes(np.zeros(len(names))))
    found = least_squares(
        at, np.zeros(len(names)), slopes, (low, high), loss="soft_l1", f_scale=0.1, xtol=1e-3, ftol=1e-3, max_nfev=12
    )
    condition = check_told_apart(names, slopes(found.x))
    values = dict(zip(names, (start + found.x * steps).tolist(), strict=True))
    at_bounds = tuple(name for name, edge in zip(names, _on_edge(found.x, low, high), strict=True) if edge)
    return Fitted(values, _rms(before), _rms(at(found.x)), condition, at_bounds)


def check_told_apart(names: Sequence[str], slopes: Matrix) -> float:
    """The condition of the slopes, a column a parameter; raises CannotTell, with the reason."""
    effects = np.sqrt(np.mean(slopes**2, axis=0))
    for name, effect in zip(names, effects, strict=True):
        if effect < MIN_EFFECT:
            raise CannotTell(
                f"the run cannot tell {name}: a plausible change of it moves its latencies by {effect:.2%}"
            )
    _, sizes, directions = np.linalg.svd(slopes / np.linalg.norm(slopes, axis=0))
    condition = float(sizes[0] / max(sizes[-1], 1e-12)) if len(sizes) == len(names) else float("inf")
    if condition > MAX_CONDITION:
        one, other = np.argsort(np.abs(directions[-1]))[-2:][::-1]
        says = f"the run cannot tell {names[one]} and {names[other]} apart: both move its latencies alike"
        raise CannotTell(f"{says} (condition {condition:.0f}, at most {MAX_CONDITION:.0f}): fit one of them")
    return condition


def _slopes(at: Callable[[Floats], Floats], scaled: Floats, low: Floats, high: Floats) -> Matrix:
    """Central differences over one step each way, or as far as the bounds allow."""
    columns = []
    for index in range(len(scaled)):
        ends = []
        for change in (-1.0, 1.0):
            moved = scaled.copy()
            moved[index] = np.clip(scaled[index] + change, low[index], high[index])
            ends.append(moved)
        width = ends[1][index] - ends[0][index]
        columns.append((at(ends[1]) - at(ends[0])) / width)
    return np.array(columns).T


def _on_edge(scaled: Floats, low: Floats, high: Floats) -> list[bool]:
    near = np.minimum(scaled - low, high - scaled) < 1e-3 * (high - low)
    return [bool(edge) for edge in near]


def _rms(deviations: Floats) -> float:
    return float(np.sqrt(np.mean(deviations**2)))
