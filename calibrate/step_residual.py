"""What whole steps take beyond the sum of their kernels: a constant or a share of them, for each kind of step.

Either minimises the squares of relative errors and is drawn towards zero, as if a few more steps had none (ridge
regression). Half of the steps choose the one that better tells a step which it was not fitted to (leaving one out), or
none where that does not help. The other half tells how far off the sums are with it and without. What was chosen is
then fitted to all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from ..sim.columns import Floats
from ..sim.cost_model.correction import Kind, kind_of
from ..sim.cost_model.fit_section import Errors, StepFit
from ..sim.cost_model.profile import Profile
from ..sim.cost_model.profile_header import Residuals
from .held_out import errors_of
from .whole_steps import WholeStep, model_of

KINDS: tuple[Kind, ...] = ("decode", "prefill", "mixed")
PULL = 2.0
"""So many steps without a residual are added to those measured."""
FEWEST = 4
"""Steps of a kind below which nothing is fitted to it."""


def fit_residual(profile: Profile, steps: Sequence[WholeStep], seed: int) -> tuple[Residuals, dict[Kind, StepFit]]:
    """The residuals of a fitted profile, and the errors of the steps that did not choose them."""
    header = profile.header.model_copy(update={"residual": Residuals()})
    kernels_of = cache(lambda num_layers: model_of(replace(profile, header=header), num_layers))
    rng = np.random.default_rng([seed, len(KINDS)])
    found: dict[str, float] = {}
    fits: dict[Kind, StepFit] = {}
    for kind in KINDS:
        chosen = [step for step in steps if kind_of(step.shape) == kind]
        if len(chosen) < FEWEST:
            continue
        order = rng.permutation(len(chosen))
        measured = np.array([chosen[i].time_us for i in order]) / 1e6
        kernels = np.array([kernels_of(chosen[i].num_layers).step_cost(chosen[i].shape).device_ns for i in order]) / 1e9
        half = len(chosen) // 2
        form = _best_form(measured[:half], kernels[:half])
        residual = 0.0 if form is None else form.fitted(measured[:half], kernels[:half])
        both = kernels[half:] if form is None else form.applied(kernels[half:], residual)
        fits[kind] = StepFit(
            kernels_alone=_errors(kernels[half:], measured[half:]), with_residual=_errors(both, measured[half:])
        )
        if form is not None:
            found[f"{kind}_{form.suffix}"] = round(form.fitted(measured, kernels), 9)
    return Residuals(**found), fits


class Form(NamedTuple):
    """What a residual grows with."""

    suffix: str
    """Of its name in the header."""
    size: Callable[[Floats], Floats]
    """From the kernels' times, what is multiplied by the residual."""

    def applied(self, kernels: Floats, residual: float | Floats) -> Floats:
        """The steps' times."""
        return kernels + residual * self.size(kernels)

    def fitted(self, measured: Floats, kernels: Floats, pull: float = PULL) -> float:
        """What is missing on average, each step weighed by 1 / time^2, drawn towards zero."""
        size = self.size(kernels)
        squares = (size / measured) ** 2
        return float(np.sum(size * (measured - kernels) / measured**2) / (squares.sum() + pull * np.median(squares)))

    def error(self, measured: Floats, kernels: Floats, pull: float = PULL) -> float:
        """Mean error of each step by the residual of the others."""
        others = [np.delete(np.arange(len(measured)), i) for i in range(len(measured))]
        residuals = np.array([self.fitted(measured[kept], kernels[kept], pull) for kept in others])
        return float(np.mean(np.abs(self.applied(kernels, residuals) / measured - 1)))


FORMS = (Form("s", np.ones_like), Form("share", np.positive))


def _best_form(measured: Floats, kernels: Floats) -> Form | None:
    """The form that goes with what is missing, if it helps; None: neither does."""
    if len(measured) < 2:
        return None
    form = min(FORMS, key=lambda form: form.error(measured, kernels, pull=0.0))
    alone = float(np.mean(np.abs(kernels / measured - 1)))
    return form if form.error(measured, kernels) < alone else None


def _errors(predicted: Floats, measured: Floats) -> Errors:
    found = errors_of(list(np.abs(predicted / measured - 1)))
    assert found is not None, "half of the steps are two at least"
    return found
