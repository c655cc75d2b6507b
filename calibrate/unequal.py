"""How decodes of unequal contexts compare with equal ones of the same mean: one coefficient, fitted to timings.

`time = mean + alpha (longest - mean)`, both terms on the curve of equal contexts: 0 says that only the mean counts,
1 that all wait for the longest. Where decodes have a launch of their own a share of the mean may come on top.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import lsq_linear

from ..sim.cost_model.attention import Attention
from ..sim.cost_model.profile_header import UnequalContexts
from ..sim.cost_model.separate_attention import SeparateAttention
from ..sim.cost_model.timings import Shape

FEWEST = 20


def fit_unequal(points: Mapping[Shape, float], curve: Attention) -> tuple[UnequalContexts, tuple[float, float] | None]:
    """The correction, not applied, and the mean |relative error| without it and with it.

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
        mean = np.array([curve.at(*_mean(shape))[0] for shape in chosen]) / time
        longest = np.array([curve.at(*_longest(shape))[0] for shape in chosen]) / time
        reach = longest - mean
        alpha = float(np.clip(np.dot(1 - mean, reach) / np.dot(reach, reach), 0.0, 1.0))
        alphas[mixed] = round(alpha, 4)
        before += list(np.abs(mean - 1))
        after += list(np.abs(mean + alpha * reach - 1))
    errors = (round(float(np.mean(before)), 4), round(float(np.mean(after)), 4)) if before else None
    return UnequalContexts(decode_alpha=alphas[0], mixed_alpha=alphas[1]), errors


def fit_share(
    points: Mapping[Shape, float], curve: SeparateAttention
) -> tuple[UnequalContexts, tuple[float, float] | None]:
    """The same where decodes are launched by themselves: with a share of the mean on top, for unequal contexts at all.

    Both coefficients minimise the squares of relative errors; neither is below 0.
    """
    if len(points) < FEWEST:
        return UnequalContexts(), None
    time = np.array(list(points.values()))
    mean = np.array([curve.at(*_mean(shape))[0] for shape in points]) / time
    longest = np.array([curve.at(*_longest(shape))[0] for shape in points]) / time
    terms = np.stack([longest - mean, mean], axis=1)
    alpha, share = lsq_linear(terms, 1 - mean, bounds=([0, 0], [1, np.inf])).x.round(4).tolist()
    after = np.abs(mean + terms @ np.array([alpha, share]) - 1)
    errors = round(float(np.mean(np.abs(mean - 1))), 4), round(float(np.mean(after)), 4)
    return UnequalContexts(decode_alpha=alpha, decode_share=share), errors


def _mean(shape: Shape) -> tuple[int, int, int, int]:
    """The shape as if all contexts were the mean."""
    q, kv, n, mean, _ = shape
    return q, kv, n, mean


def _longest(shape: Shape) -> tuple[int, int, int, int]:
    """The shape as if all contexts were the longest."""
    q, kv, n, _, longest = shape
    return q, kv, n, longest
