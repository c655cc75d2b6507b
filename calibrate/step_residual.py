"""What whole steps take beyond the sum of their kernels: a constant for each kind of step, fitted to half of them.

The constant minimises the squares of relative errors and is drawn towards zero, as if a few more steps had none
(ridge regression). It is kept where it helps each step that it was not fitted to, on average over the half (leaving one
out). The other half of the steps tells how far off the sums are with it and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..sim.cost_model.correction import Kind, kind_of
from ..sim.cost_model.profile import Profile
from ..sim.cost_model.profile_header import Residuals, StepFit
from ..sim.cost_model.profiled import ProfiledCostModel
from .held_out import errors_of
from .whole_steps import WholeStep

KINDS: tuple[Kind, ...] = ("decode", "prefill", "mixed")
PULL = 2.0
"""So many steps without a residual are added to those measured."""
FEWEST = 4
"""Steps of a kind below which nothing is fitted to it."""


def fit_residual(profile: Profile, steps: Sequence[WholeStep], seed: int) -> tuple[Residuals, dict[Kind, StepFit]]:
    """The residuals of a fitted profile, and the errors of the steps that they were not fitted to."""
    model_of = cache(lambda num_layers: _kernels_of(profile, num_layers))
    rng = np.random.default_rng([seed, len(KINDS)])
    found: dict[str, float] = {}
    fits: dict[Kind, StepFit] = {}
    for kind in KINDS:
        chosen = [step for step in steps if kind_of(step.shape) == kind]
        if len(chosen) < FEWEST:
            continue
        order = rng.permutation(len(chosen))
        measured = np.array([chosen[i].time_us for i in order])
        kernels = np.array([model_of(chosen[i].num_layers).step_cost(chosen[i].shape).device_ns for i in order]) / 1e3
        half = len(chosen) // 2
        residual_us = shrunk(measured[:half], kernels[:half]) if _helps(measured[:half], kernels[:half]) else 0.0
        alone = errors_of(list(np.abs(kernels[half:] / measured[half:] - 1)))
        both = errors_of(list(np.abs((kernels[half:] + residual_us) / measured[half:] - 1)))
        assert alone is not None, kind
        assert both is not None, kind
        found[f"{kind}_s"] = round(residual_us / 1e6, 9)
        fits[kind] = StepFit(kernels_alone=alone, with_residual=both)
    return Residuals(**found), fits


def shrunk(measured: NDArray[np.float64], kernels: NDArray[np.float64]) -> float:
    """The constant that is missing on average, each step weighed by 1 / time^2, drawn towards zero."""
    weights = measured**-2.0
    return float(np.sum(weights * (measured - kernels)) / (np.sum(weights) + PULL * np.median(weights)))


def _helps(measured: NDArray[np.float64], kernels: NDArray[np.float64]) -> bool:
    """Whether a step's error falls, on average, by the residual of the other steps."""
    if len(measured) < 2:
        return False
    others = [np.delete(np.arange(len(measured)), i) for i in range(len(measured))]
    residuals = np.array([shrunk(measured[kept], kernels[kept]) for kept in others])
    with_it, alone = (np.abs(kernels + added - measured) / measured for added in (residuals, 0.0))
    return bool(np.mean(with_it) < np.mean(alone))


def _kernels_of(profile: Profile, num_layers: int) -> ProfiledCostModel:
    """What prices a step of so many layers by its kernels alone, floors included."""
    header = profile.header.model_copy(update={"residual": Residuals()})
    return ProfiledCostModel(
        replace(profile, header=header),
        header.model.model(num_layers),
        header.tensor_parallel,
        kv_dtype_bytes=header.kv_dtype_bytes,
        graph_sizes=header.graph_sizes or (),
        pads_decodes_alone=header.graph_sizes is not None,
    )
