"""Norms: the Triton kernels against float64, beside the torch reference in the same dtype."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from llmsim.kernels import norm
from llmsim.kernels.reference import norm as reference
from llmsim.tests.support.kernel_checks import DEVICE, DTYPES, TOKEN_COUNTS, assert_as_exact, fused_heads, normal

EPS = 1e-5
SHAPES = [*((tokens, 96) for tokens in TOKEN_COUNTS), (3, 1), (3, 64), (3, 576), (2, 1000)]
HEADS = [(1, 1, 64), (3, 1, 128), (9, 3, 64), (8, 8, 64), (14, 2, 128)]


def exact_norm(x: Tensor, weight: Tensor) -> Tensor:
    wide = x.double()
    return wide / (wide.square().mean(-1, keepdim=True) + EPS).sqrt() * weight.double()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rms_norm_is_as_exact_as_its_reference(dtype: torch.dtype) -> None:
    for num_tokens, hidden in SHAPES:
        x, weight = normal(num_tokens, hidden, dtype=dtype), normal(hidden, dtype=dtype, seed=1)
        result = norm.rms_norm(x, weight, EPS)
        assert_as_exact(result, reference.rms_norm(x, weight, EPS), exact_norm(x, weight))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_residual_is_added_in_place_and_its_rounded_sum_is_normed(dtype: torch.dtype) -> None:
    for num_tokens, hidden in SHAPES:
        x, weight = normal(num_tokens, hidden, dtype=dtype), normal(hidden, dtype=dtype, seed=1)
        residual = normal(num_tokens, hidden, dtype=dtype, seed=2)
        expected = residual + x
        result = norm.add_rms_norm(x, residual, weight, EPS)
        assert torch.equal(residual, expected)
        assert torch.equal(result, norm.rms_norm(expected, weight, EPS))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_each_head_of_q_and_k_is_normed_in_its_fused_row(dtype: torch.dtype) -> None:
    for heads, kv_heads, dim in HEADS:
        fused, q, k, _ = fused_heads(3, heads, kv_heads, dim, dtype)
        q_weight, k_weight = normal(dim, dtype=dtype, seed=1), normal(dim, dtype=dtype, seed=2)
        before = fused.clone()
        exact_q, exact_k = exact_norm(q, q_weight), exact_norm(k, k_weight)
        plain_q, plain_k = reference.rms_norm(q, q_weight, EPS), reference.rms_norm(k, k_weight, EPS)
        norm.qk_norm(q, k, q_weight, k_weight, EPS)
        assert_as_exact(q, plain_q, exact_q)
        assert_as_exact(k, plain_k, exact_k)
        assert torch.equal(fused[:, (heads + kv_heads) * dim :], before[:, (heads + kv_heads) * dim :])


def test_rows_that_stand_apart_are_normed_as_if_they_did_not() -> None:
    wide, weight = normal(5, 300, dtype=torch.float32), normal(100, dtype=torch.float32)
    x, residual = wide[:, :100], wide[:, 100:200].clone()
    assert torch.equal(norm.rms_norm(x, weight, EPS), norm.rms_norm(x.contiguous(), weight, EPS))
    strided = wide[:, 100:200]
    result = norm.add_rms_norm(x, strided, weight, EPS)
    assert torch.equal(result, norm.add_rms_norm(x.contiguous(), residual, weight, EPS))
    assert torch.equal(strided, residual)


def test_squares_beyond_fp16_are_summed_in_fp32() -> None:
    x = torch.full((2, 64), 3e4, dtype=torch.float16, device=DEVICE)
    assert torch.equal(norm.rms_norm(x, torch.ones_like(x[0]), EPS), torch.ones_like(x))


def test_no_token_is_no_launch() -> None:
    _, q, k, _ = fused_heads(0, 4, 2, 64, torch.float32)
    weight = torch.ones(64, device=DEVICE)
    norm.qk_norm(q, k, weight, weight, EPS)
    assert norm.rms_norm(torch.empty(0, 64, device=DEVICE), weight, EPS).shape == (0, 64)
