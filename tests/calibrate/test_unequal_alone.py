"""Decodes of unequal contexts in an engine that launches them apart."""

from __future__ import annotations

from itertools import product

import pytest

from llmsim.calibrate.unequal import fit_alone
from llmsim.sim.cost_model.separate_attention import SeparateAttention

BATCHES, CONTEXTS = (1, 8, 64), (16, 256, 4096)
EQUAL = {(0, 0, n, context): 10.0 + 0.01 * n * context for n, context in product(BATCHES, CONTEXTS)}
CURVE = SeparateAttention(EQUAL, lambda *shape: float(sum(shape)))


def test_all_coefficients_are_found() -> None:
    points = {}
    for n, mean, reach in product((8, 64), (256, 1000), (1.1, 1.5, 2, 3, 4)):
        longest = round(mean * reach)
        mean_us, longest_us = (CURVE.at(0, 0, n, context)[0] for context in (mean, longest))
        points[0, 0, n, mean, longest] = mean_us + 0.05 * (longest_us - mean_us) + 30 + 2 * n
    found, errors = fit_alone(points, CURVE)
    assert found.decode_alpha == pytest.approx(0.05, abs=1e-3)
    assert (found.decode_us, found.decode_each_us) == (pytest.approx(30, rel=0.01), pytest.approx(2, rel=0.01))
    assert errors is not None
    assert errors[1] < 0.001 < errors[0]
    assert fit_alone(dict(list(points.items())[:19]), CURVE)[1] is None


def test_unequal_contexts_are_never_taken_to_be_cheaper() -> None:
    points = {(0, 0, 8, mean, 2 * mean): 0.5 * CURVE.at(0, 0, 8, mean)[0] for mean in range(100, 200, 4)}
    found, _ = fit_alone(points, CURVE)
    assert (found.decode_alpha, found.decode_us, found.decode_each_us) == (0, 0, 0)
