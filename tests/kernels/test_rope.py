"""Rotary embedding: the Triton kernel against float64, beside the torch reference in the same dtype."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from llmsim.kernels import rope as kernel
from llmsim.kernels.reference import rope as reference
from llmsim.tests.support.kernel_checks import DEVICE, DTYPES, TOKEN_COUNTS, assert_as_exact, fused_heads

HEADS = [(1, 1, 64), (3, 1, 128), (9, 3, 64), (8, 8, 64), (14, 2, 128)]
SHAPES = [*((tokens, 4, 2, 64) for tokens in TOKEN_COUNTS), *((3, *heads) for heads in HEADS)]


def angles(head_dim: int, num_positions: int = 200) -> Tensor:
    """The table of cosines and sines of Llama (base 10,000)."""
    frequencies = 10_000.0 ** (-torch.arange(0, head_dim, 2) / head_dim)
    turns = torch.arange(num_positions)[:, None] * frequencies
    return torch.cat((turns.cos(), turns.sin()), dim=-1).to(DEVICE)


def exact_rotation(x: Tensor, positions: Tensor, cos_sin: Tensor) -> Tensor:
    """Pairs of dimensions as complex numbers, turned."""
    cos, sin = cos_sin[positions].double()[:, None].chunk(2, dim=-1)
    first, second = x.double().chunk(2, dim=-1)
    turned = torch.complex(first, second) * torch.complex(cos, sin)
    return torch.cat((turned.real, turned.imag), dim=-1)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_q_and_k_turn_in_place_by_their_positions(dtype: torch.dtype) -> None:
    for num_tokens, heads, kv_heads, dim in SHAPES:
        fused, q, k, _ = fused_heads(num_tokens, heads, kv_heads, dim, dtype)
        plain_q, plain_k, before, cos_sin = q.clone(), k.clone(), fused.clone(), angles(dim)
        positions = (torch.arange(num_tokens, device=DEVICE) * 37 + 5) % 200
        exact = [exact_rotation(x, positions, cos_sin) for x in (q, k)]
        reference.rope(plain_q, plain_k, positions, cos_sin)
        kernel.rope(q, k, positions, cos_sin)
        assert_as_exact(q, plain_q, exact[0])
        assert_as_exact(k, plain_k, exact[1])
        assert torch.equal(fused[:, (heads + kv_heads) * dim :], before[:, (heads + kv_heads) * dim :])


def test_reference_turns_views_in_place_and_leaves_values_alone() -> None:
    fused, q, k, v = fused_heads(3, 4, 2, 64, torch.float32)
    positions, cos_sin, before = torch.tensor([0, 7, 3], device=DEVICE), angles(64), fused.clone()
    exact = exact_rotation(q, positions, cos_sin)
    reference.rope(q, k, positions, cos_sin)
    assert (q.double() - exact).abs().max() < 1e-6
    assert torch.equal(q[0], before[0, : 4 * 64].unflatten(-1, (4, 64)))
    assert torch.equal(v.flatten(1), before[:, 6 * 64 :])
