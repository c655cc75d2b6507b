"""What tests of kernels share: where they run, odd shapes, and how far from float64 a result may be.

Without a GPU kernels run in triton's interpreter on CPU tensors; with one, `TRITON_INTERPRET=0 pytest tests/kernels`
runs the very same tests compiled.
"""

from __future__ import annotations

import os

import torch
from torch import Tensor

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = torch.device("cpu" if INTERPRETED else "cuda")
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
TOKEN_COUNTS = (0, 1, 15, 16, 17, 33)


def normal(*shape: int, dtype: torch.dtype, seed: int = 0, scale: float = 1.0) -> Tensor:
    """Normally distributed numbers, the same on every device."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator) * scale).to(dtype).to(DEVICE)


def fused_heads(num_tokens: int, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """The fused row of each token, and its views q [T, H, D], k and v [T, KVH, D]."""
    fused = normal(num_tokens, (heads + 2 * kv_heads) * head_dim, dtype=dtype)
    return fused, *fused.unflatten(-1, (-1, head_dim)).split((heads, kv_heads, kv_heads), dim=1)


def assert_as_exact(actual: Tensor, reference: Tensor, exact: Tensor) -> None:
    """The result is at most twice as far from the float64 one as the reference in the same dtype.

    Half a unit in the last place of the largest number is granted to both: nobody can round better.
    """
    assert actual.dtype == reference.dtype
    assert actual.shape == reference.shape
    if exact.numel() == 0:
        return
    unit = torch.finfo(actual.dtype).eps * exact.abs().max().item() / 2
    allowed = 2 * max(distance(reference, exact), unit)
    assert distance(actual, exact) <= allowed, f"{distance(actual, exact):.3g} off; the reference {allowed / 2:.3g}"


def distance(result: Tensor, exact: Tensor) -> float:
    """The largest error; a NaN, where a result was left unwritten, is infinitely far."""
    errors = (result.double() - exact).abs()
    return float("inf") if bool(errors.isnan().any()) else errors.max().item()
