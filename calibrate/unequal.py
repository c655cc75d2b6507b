"""How decodes of unequal contexts compare with equal ones of the same mean: a coefficient each, fitted to timings.

    decodes alone      time = mean + alpha (longest - mean)    both of the whole batch, on the curve of equal contexts
    beside a prefill   time = mean + alpha (longest - mean)    the differing two of one decode beside that prefill

The first is 0 where only the mean counts and 1 where all wait for the longest. In the second launch each decode is a
chain of its own that nothing divides, and the longest ends so much later than others: 1 adds all of that. In an engine
that launches decodes by themselves so much a launch and a decode may come on top.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..sim.columns import Floats
from ..sim.cost_model.attention import Attention
from ..sim.cost_model.attention_curve import AttentionCurve
from ..sim.cost_model.profile_header import UnequalContexts
from ..sim.cost_model.separate_attention import SeparateAttention
from ..sim.cost_model.timings import Shape

FEWEST = 20


def fit_unequal(
    points: Mapping[Shape, float], curve: AttentionCurve
) -> tuple[UnequalContexts, tuple[float, float] | None]:
    """The corrections, and the mean |relative error| without them and with them.

    Each alpha minimises the relative errors' squares; with fewer than 20 timings it stays 0.
    """
    alphas = [0.0, 0.0]
    before: list[float] = []
    after: list[float] = []
    for mixed in (False, True):
        chosen = {shape: time for shape, time in points.items() if bool(shape[0]) is mixed}
        if len(chosen) < FEWEST:
            continue
        time = np.array(list(chosen.values()))
        mean = np.array([curve.at(*shape[:4])[0] for shape in chosen]) / time
        reach = _reach(chosen, curve) / time
        alpha = float(np.clip(np.dot(1 - mean, reach) / np.dot(reach, reach), 0.0, 1.0)) if reach.any() else 0.0
        alphas[mixed] = round(alpha, 4)
        before += list(np.abs(mean - 1))
        after += list(np.abs(mean + alpha * reach - 1))
    errors = (round(float(np.mean(before)), 4), round(float(np.mean(after)), 4)) if before else None
    return UnequalContexts(decode_alpha=alphas[0], mixed_alpha=alphas[1]), errors


def fit_alone(
    points: Mapping[Shape, float], curve: SeparateAttention
) -> tuple[UnequalContexts, tuple[float, float] | None]:
    """The same where decodes have launches of their own: so much a launch and a decode on top.

    The coefficients minimise the squares of relative errors; none is below 0.
    """
    if len(points) < FEWEST:
        return UnequalContexts(), None
    time = np.array(list(points.values()))
    mean = np.array([curve.at(*shape[:4])[0] for shape in points]) / time
    decodes = np.array([shape[2] for shape in points])
    terms = np.stack([_reach(points, curve) / time, 1 / time, decodes / time], axis=1)
    from scipy.optimize import lsq_linear  # takes a third of a second, and few commands fit anything

    found = lsq_linear(terms, 1 - mean, bounds=(0, [1, np.inf, np.inf])).x.round(4)
    after = np.abs(mean + terms @ found - 1)
    errors = round(float(np.mean(np.abs(mean - 1))), 4), round(float(np.mean(after)), 4)
    alpha, launch_us, each_us = found.tolist()
    return UnequalContexts(decode_alpha=alpha, decode_us=launch_us, decode_each_us=each_us), errors


def _reach(points: Mapping[Shape, float], curve: Attention) -> Floats:
    """Longest - mean, of shapes that are all of one kind."""
    return np.array([_longer(curve, *shape) for shape in points], dtype=np.float64)


def _longer(curve: Attention, q_tokens: int, kv_tokens: int, num_decodes: int, mean: int, longest: int) -> float:
    if q_tokens and isinstance(curve, AttentionCurve):
        return curve.longer(q_tokens, kv_tokens, mean, longest)
    return curve.at(0, 0, num_decodes, longest)[0] - curve.at(0, 0, num_decodes, mean)[0]
