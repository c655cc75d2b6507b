"""Attention of prefill, of decodes, and of both in one launch."""

from __future__ import annotations

import pytest

from llmsim.sim.cost_model.attention_curve import AttentionCurve
from llmsim.sim.cost_model.curve_grid import Basis
from llmsim.sim.cost_model.joined_chunks import joined

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


def causal(q: int, kv: float, n: int = 0, context: float = 0) -> float:
    """A time that goes with the (query, key) pairs, as a measured table would have it."""
    return 10.0 + 0.1 * q + 1e-4 * q * (kv + q / 2) + 1e-2 * n * context


QUERIES, CACHED = (128, 256, 512, 1024, 2048), (0, 128, 256, 512, 1024, 2048, 4096)
PAIRS = AttentionCurve({(q, kv, 0, 0): causal(q, kv) for q in QUERIES for kv in CACHED}, flat)


@pytest.mark.parametrize(
    "chunks", [[(1024, 0), (1024, 0)], [(512, 0)] * 4, [(256, 1024), (256, 0)], [(128, 4096), (1920, 0)]]
)
def test_prompts_in_one_step_cost_what_their_own_pairs_do(chunks):
    q_tokens = sum(q for q, _ in chunks)
    own = 10.0 + 0.1 * q_tokens + sum(1e-4 * q * (kv + q / 2) for q, kv in chunks)
    time, basis = PAIRS.at(*joined(chunks), 0, 0)
    assert time == pytest.approx(own)
    assert basis <= Basis.INTERPOLATED
    assert time < causal(q_tokens, sum(kv for _, kv in chunks)), "as one long prompt they would see each other's keys"


def test_a_chunk_alone_is_itself():
    assert joined([(1000, 77)]) == (1000, 77)


def test_small_chunks_add_up_as_the_tiles_that_they_fill():
    assert joined([(128, 300), (128, 100)]) == (256, (300 + 100 + 128) / 2 - 128)
    q_tokens, kv_tokens = joined([(1, 300), (1, 100)])
    assert (q_tokens, kv_tokens) == (2, pytest.approx(300 + 100 + 1 - 1)), "each reads all of its own keys"


def test_a_decode_of_the_longest_context_is_told_from_one_of_the_mean():
    points = {
        (q, kv, n, c): causal(q, kv, n, c) for q in (128, 256) for kv in (0, 256) for n in (1, 8) for c in (16, 1024)
    }
    curve = AttentionCurve({**{s: causal(*s) for s in ((128, 0, 0, 0), (0, 0, 1, 16))}, **points}, flat)
    assert curve.longer(128, 0, 100, 612) == pytest.approx(1e-2 * 512)
    assert curve.longer(128, -30.0, 100, 612) == pytest.approx(1e-2 * 512)
    assert curve.longer(128, 0, 612, 612) == 0
