"""The repaired interpreter: bf16 as a GPU has it, or an error."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from llmsim.tests.support.interpreted import narrowed, widened
from llmsim.tests.support.kernel_checks import INTERPRETED

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")
pytestmark = pytest.mark.skipif(not INTERPRETED, reason="kernels are compiled")


@triton.jit
def cast(source, target, N: tl.constexpr):  # noqa: N803
    at = tl.arange(0, N)
    tl.store(target + at, tl.load(source + at).to(target.dtype.element_ty))


@triton.jit
def multiply(a, b, out, N: tl.constexpr):  # noqa: N803
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@triton.jit
def twice(source, N: tl.constexpr):  # noqa: N803
    at = source + tl.arange(0, N)
    tl.store(at, tl.load(at) + tl.load(at))


@triton.jit
def total(source, N: tl.constexpr):  # noqa: N803
    tl.store(source, tl.reduce(tl.load(source + tl.arange(0, N)), 0, tl.standard._sum_combine))


def fp32_of_all_kinds() -> torch.Tensor:
    """Random bits, and ties, infinities, zeros and a NaN."""
    bits = np.random.default_rng(0).integers(0, 2**32, 1016, dtype=np.uint64).astype(np.uint32)
    special = torch.tensor([1 + 2**-8, 1 + 3 * 2**-8, float("inf"), -float("inf"), 0.0, -0.0, float("nan"), 3.39e38])
    return torch.cat((torch.from_numpy(bits.view(np.float32)), special))


def test_casts_to_bf16_round_to_nearest_even_as_torch_does() -> None:
    source = fp32_of_all_kinds()
    expected = source.to(torch.bfloat16)
    target = torch.empty_like(expected)
    cast[(1,)](source, target, N=1024)
    assert torch.equal(target.nan_to_num(7.0), expected.nan_to_num(7.0))
    assert torch.equal(target.isnan(), expected.isnan())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32], ids=str)
def test_casts_from_bf16_give_its_numbers(dtype: torch.dtype) -> None:
    source = torch.randn(64, generator=torch.Generator().manual_seed(0)).mul(20).to(torch.bfloat16)
    target = torch.empty(64, dtype=dtype)
    cast[(1,)](source, target, N=64)
    assert torch.equal(target, source.to(dtype))


def test_widening_and_narrowing_are_inverse() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    numbers = bits[~np.isnan(widened(bits))]
    assert np.array_equal(narrowed(widened(numbers)), numbers)


def test_products_of_bf16_matrices_are_those_of_its_numbers() -> None:
    a, b = torch.randn(2, 16, 16, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    out = torch.empty(16, 16)
    multiply[(1,)](a, b, out, N=16)
    assert (out - a.float() @ b.float()).abs().max() < 1e-5


@pytest.mark.parametrize("kernel", [twice, total], ids=["addition", "reduction"])
def test_arithmetic_on_bf16_is_refused(kernel) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Exception, match="bf16, which the interpreter gets wrong: cast to fp32 first"):
        kernel[(1,)](torch.ones(16, dtype=torch.bfloat16), N=16)
