"""Attention of prefill, of decodes, and of both in one launch."""

from __future__ import annotations

import pytest

from llmsim.sim.cost_model.attention_curve import AttentionCurve
from llmsim.sim.cost_model.curve_grid import Basis

APART = {(q, kv, 0, 0): q + kv / 10.0 for q in (16, 64) for kv in (0, 100)}
APART |= {(0, 0, n, context): n * context / 10.0 for n in (1, 8) for context in (16, 512, 1024)}
TOGETHER = {(q, 0, n, context): 1000.0 + q + n + context for q in (16, 64) for n in (1, 8) for context in (16, 1024)}


def flat(*shape: float) -> float:
    """A floor that never grows."""
    return 1.0


def test_mixed_steps_have_points_of_their_own():
    curve = AttentionCurve({**APART, **TOGETHER}, flat)
    assert curve.at(16, 0, 8, 1024) == (TOGETHER[16, 0, 8, 1024], Basis.MEASURED)
    assert curve.at(40, 0, 8, 520) == (pytest.approx(1568.0), Basis.INTERPOLATED)


def test_where_nothing_mixed_was_measured_both_add_and_count_as_extrapolated():
    curve = AttentionCurve(APART, flat)
    assert curve.at(16, 100, 8, 512) == (APART[16, 100, 0, 0] + APART[0, 0, 8, 512], Basis.EXTRAPOLATED)


def test_a_short_context_is_looked_up_on_lines_that_reach_it():
    coarse = {(32, 0, n, context): 9999.0 for n in (1, 8) for context in (512, 1024)}
    curve = AttentionCurve({**APART, **TOGETHER, **coarse}, flat)
    assert curve.at(40, 0, 8, 100) == (pytest.approx(1148.0), Basis.INTERPOLATED)
    assert curve.at(32, 0, 8, 512) == (9999.0, Basis.MEASURED)


def test_nothing_to_attend_to_takes_no_time():
    assert AttentionCurve(APART, flat).at(0, 0, 0, 0)[0] == 0
