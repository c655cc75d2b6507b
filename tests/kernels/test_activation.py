"""The gated activation: the Triton kernel against float64, beside the torch reference in the same dtype."""

from __future__ import annotations

import pytest
import torch

from llmsim.kernels import activation
from llmsim.kernels.reference import activation as reference
from llmsim.tests.support.kernel_checks import DEVICE, DTYPES, TOKEN_COUNTS, assert_as_exact, normal

SHAPES = [*((tokens, 96) for tokens in TOKEN_COUNTS), (3, 1), (2, 1536), (2, 2500)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_silu_mul_is_as_exact_as_its_reference(dtype: torch.dtype) -> None:
    for num_tokens, intermediate in SHAPES:
        gate_up = normal(num_tokens, 2 * intermediate, dtype=dtype, scale=3.0)
        gate, up = gate_up.double().chunk(2, dim=-1)
        exact = gate * torch.sigmoid(gate) * up
        assert_as_exact(activation.silu_mul(gate_up), reference.silu_mul(gate_up), exact)


def test_extreme_gates_close_and_open() -> None:
    gate_up = torch.tensor([[-1e4, 1e4, 2.0, 2.0], [-88.0, 0.0, 1.0, 1.0]], device=DEVICE)
    assert activation.silu_mul(gate_up)[0].tolist() == [0.0, 2e4]
    assert activation.silu_mul(gate_up)[1, 1].item() == 0.0


def test_rows_that_stand_apart_are_found() -> None:
    wide = normal(5, 500, dtype=torch.float32)
    assert torch.equal(activation.silu_mul(wide[:, :200]), activation.silu_mul(wide[:, :200].contiguous()))
