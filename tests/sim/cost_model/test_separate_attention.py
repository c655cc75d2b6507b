"""Attention whose decodes and chunks are launched apart: they add, chunk by chunk, and that is no extrapolation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmsim.sim.cost_model.curve_grid import Basis
from llmsim.sim.cost_model.ragged_curve import RaggedCurve
from llmsim.sim.cost_model.separate_attention import SeparateAttention

QS, KVS = (2, 16, 64, 256, 1024), (0, 128, 512, 2048)


def work_us(q: float, kv: float) -> float:
    """A launch, new tokens, cached ones to read, pairs to multiply."""
    return 20 + 0.5 * q + 0.02 * kv + 0.001 * (q * kv + q * q / 2)


def floor(*shape: float) -> float:
    return sum(shape)


CHUNKS = {(q, kv): work_us(q, kv) for q in QS for kv in KVS}
DECODES = {(n, context): 10.0 + n + 0.001 * n * context for n in (1, 8, 64) for context in (16, 1024)}


def attention(shared_us: float = 0.0) -> SeparateAttention:
    points = {(q, kv, 0, 0): time for (q, kv), time in CHUNKS.items()}
    points |= {(0, 0, n, context): time for (n, context), time in DECODES.items()}
    return SeparateAttention(points, floor, shared_us=shared_us)


@given(q=st.integers(2, 1024), kv=st.integers(0, 2048))
def test_between_points_the_work_of_a_chunk_is_exact(q: int, kv: int) -> None:
    time, basis = RaggedCurve(CHUNKS, floor, triangle=True).at((q, kv))
    assert time == pytest.approx(work_us(q, kv))
    assert basis == (Basis.MEASURED if (q, kv) in CHUNKS else Basis.INTERPOLATED)


@given(q=st.integers(2, 1024), kv=st.integers(0, 512))
def test_lines_without_cached_tokens_do_not_spoil_those_that_have_them(q: int, kv: int) -> None:
    points = CHUNKS | {(q, 0): work_us(q, 0) for q in (24, 96, 700)}
    assert RaggedCurve(points, floor, triangle=True).at((q, kv))[0] == pytest.approx(work_us(q, kv))


def test_beyond_the_points_time_grows_as_the_floor_does() -> None:
    time, basis = RaggedCurve(CHUNKS, floor, triangle=True).at((1024, 4096))
    assert time == pytest.approx(work_us(1024, 2048) * (1024 + 4096) / (1024 + 2048))
    assert basis == Basis.EXTRAPOLATED


def test_chunks_and_decodes_add_and_rest_on_what_both_rest_on() -> None:
    curve = attention()
    both, basis = curve.of_chunks([(64, 128), (256, 0)], 8, 16)
    assert both == pytest.approx(work_us(64, 128) + work_us(256, 0) + DECODES[8, 16])
    assert basis == Basis.MEASURED
    assert curve.of_chunks([(65, 128)], 8, 16)[1] == Basis.INTERPOLATED


def test_further_chunks_of_a_launch_save_what_the_profile_says() -> None:
    three = [(64, 128), (256, 0), (16, 512)]
    saved = attention().of_chunks(three, 0, 0)[0] - attention(shared_us=5.0).of_chunks(three, 0, 0)[0]
    assert saved == pytest.approx(10)
    assert attention(shared_us=5.0).at(64, 128, 8, 16) == attention().at(64, 128, 8, 16)


def test_a_chunk_of_one_token_is_a_decode() -> None:
    curve = attention()
    assert curve.of_chunks([(1, 1023)] * 8, 0, 0)[0] == DECODES[8, 1024]
    assert curve.of_chunks([(1, 1023)] * 4, 4, 1024)[0] == pytest.approx(DECODES[8, 1024])


def test_nothing_takes_no_time() -> None:
    assert attention().of_chunks([], 0, 0) == (0.0, Basis.MEASURED)


@given(n=st.integers(1, 64), context=st.integers(16, 1024))
def test_decodes_lie_between_lines_that_reach_as_far(n: int, context: int) -> None:
    points = DECODES | {(size, at): 10.0 + size + 0.001 * size * at for size, at in ((5, 64), (20, 64), (20, 512))}
    time, _ = RaggedCurve(points, floor).at((n, context))
    assert time == pytest.approx(10.0 + n + 0.001 * n * context)
    assert {16, 1024} <= RaggedCurve(points, floor).coordinates(n)
