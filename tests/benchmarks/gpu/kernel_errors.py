"""Every kernel on the device against float64: error at most twice that of plain torch in the same dtype.

Memory that kernels allocate for what they return is poisoned with NaN first, and so are cache slots of nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from llmsim.kernels.contract import Kernels
from llmsim.kernels.torch_backend import TorchKernels
from llmsim.tests.benchmarks.gpu.checks import Check

PART = "kernel errors"
BOUND = 2.0
LENGTHS = [0, 1, 15, 16, 17, 129, 1000, 5000]
Pair = tuple[Tensor, Tensor]


def kernel_errors(kernels: Kernels, device: torch.device, *, is_small: bool) -> Iterator[Check]:
    """Worst error over plain torch's, of each kernel, dtype and head dimension."""
    lengths = [min(length, 200) for length in LENGTHS] if is_small else LENGTHS
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for name, measure in _PLAIN.items():
            yield _check(f"{name}, {str(dtype)[6:]}", measure, kernels, device, dtype)
        for head_dim in (64, 128):
            for group in (1, 3, 4, 8):
                for name, attention in (("decode", _decode), ("extend", _extend)):
                    measure = _with(attention, lengths, head_dim, group)
                    title = f"{name} attention, {str(dtype)[6:]}, D {head_dim}, group {group}"
                    yield _check(title, measure, kernels, device, dtype)


Measure = Callable[[Kernels, torch.device, torch.dtype], Pair]
"""What a kernel returns, and the same in float64."""


def _check(title: str, measure: Measure, kernels: Kernels, device: torch.device, dtype: torch.dtype) -> Check:
    ours, plain = (_error(measure, one, device, dtype) for one in (kernels, TorchKernels()))
    resolution = torch.finfo(dtype).eps
    ratio = ours / max(plain, resolution / 4)
    return Check(PART, title, ratio, BOUND, at_most=True, note=f"{ours:.2e}, plain torch {plain:.2e}")


def _error(measure: Measure, kernels: Kernels, device: torch.device, dtype: torch.dtype) -> float:
    """Largest difference, as a share of the largest value; infinite where something is not finite."""
    torch.manual_seed(0)
    _poison(device)
    got, want = measure(kernels, device, dtype)
    if not torch.isfinite(got).all():
        return float("inf")
    return float((got.double() - want).abs().max() / want.abs().max())


def _poison(device: torch.device) -> None:
    """Leave NaN in the memory that the allocator hands out next."""
    for size in (1 << 12, 1 << 16, 1 << 20, 1 << 24):
        torch.full((size,), float("nan"), device=device)


def _random(device: torch.device, dtype: torch.dtype, *shape: int) -> Tensor:
    return torch.randn(shape, device=device).to(dtype)


def _norm64(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    x = x.double()
    return x * (x.pow(2).mean(-1, keepdim=True) + eps).rsqrt() * weight.double()


def _rms_norm(kernels: Kernels, device: torch.device, dtype: torch.dtype) -> Pair:
    x, weight = _random(device, dtype, 33, 1000), _random(device, dtype, 1000)
    return kernels.rms_norm(x, weight, 1e-6), _norm64(x, weight, 1e-6)


def _add_rms_norm(kernels: Kernels, device: torch.device, dtype: torch.dtype) -> Pair:
    x, residual = _random(device, dtype, 33, 4096), _random(device, dtype, 33, 4096)
    weight = _random(device, dtype, 4096)
    want = _norm64((x.double() + residual.double()).to(dtype), weight, 1e-6)
    return kernels.add_rms_norm(x, residual, weight, 1e-6), want


def _heads(device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Views of one fused tensor, as the model has them: 17 tokens, 6 heads and 2 KV heads of 128."""
    q, k, v = _random(device, dtype, 17, 10, 128).split((6, 2, 2), dim=1)
    return q, k, v


def _qk_norm(kernels: Kernels, device: torch.device, dtype: torch.dtype) -> Pair:
    (q, k, _), weight = _heads(device, dtype), _random(device, dtype, 128)
    want = torch.cat([_norm64(q, weight, 1e-6), _norm64(k, weight, 1e-6)], dim=1)
    kernels.qk_norm(q, k, weight, weight, 1e-6)
    return torch.cat([q, k], dim=1), want


def _rope(kernels: Kernels, device: torch.device, dtype: torch.dtype) -> Pair:
    q, k, _ = _heads(device, dtype)
    angles = torch.arange(300, device=device)[:, None] * torch.rand(64, device=device)[None, :]
    table, positions = torch.cat([angles.cos(), angles.sin()], dim=1), torch.randint(0, 300, (17,), device=device)
    cos, sin = table[positions].double()[:, None, :].chunk(2, dim=-1)

    def rotated(x: Tensor) -> Tensor:
        first, second = x.double().chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)

    want = torch.cat([rotated(q), rotated(k)], dim=1)
    kernels.rope(q, k, positions, table)
    return torch.cat([q, k], dim=1), want


def _silu_mul(kernels: Kernels, device: torch.device, dtype: torch.dtype) -> Pair:
    x = _random(device, dtype, 33, 2 * 1000)
    gate, up = x.double().chunk(2, dim=-1)
    return kernels.silu_mul(x), gate * gate.sigmoid() * up


def _write_kv(kernels: Kernels, device: torch.device, dtype: torch.dtype) -> Pair:
    _, k, v = _heads(device, dtype)
    caches = torch.zeros(2, 9, 2, 16, 128, dtype=dtype, device=device)
    slots = torch.randperm(9 * 16, device=device)[:17]
    slots[3] = -1
    kernels.write_kv(k, v, caches[0], caches[1], slots)
    want = torch.zeros(2, 9, 2, 16, 128, dtype=torch.float64, device=device)
    for token, slot in enumerate(slots.tolist()):
        if slot >= 0:
            want[0, slot // 16, :, slot % 16], want[1, slot // 16, :, slot % 16] = k[token].double(), v[token].double()
    return caches, want


def _greedy(kernels: Kernels, device: torch.device, dtype: torch.dtype) -> Pair:
    logits = _random(device, dtype, 17, 128_256)
    return kernels.greedy(logits).double(), logits.double().argmax(-1).double()


_PLAIN: dict[str, Measure] = {
    "RMSNorm": _rms_norm,
    "RMSNorm with residual": _add_rms_norm,
    "QK norm": _qk_norm,
    "RoPE": _rope,
    "SiLU-mul": _silu_mul,
    "KV write": _write_kv,
    "greedy": _greedy,
}


class _Cache:
    """Sequences' keys and values in scattered blocks; all slots that nobody has are NaN."""

    def __init__(self, lengths: list[int], head_dim: int, device: torch.device, dtype: torch.dtype) -> None:
        counts = [-(-length // 16) for length in lengths]
        self.caches = torch.full((2, sum(counts) + 1, 2, 16, head_dim), float("nan"), dtype=dtype, device=device)
        self.tables = torch.zeros(len(lengths), max(counts), dtype=torch.int32, device=device)
        order = (torch.randperm(sum(counts)) + 1).tolist()
        self.held: list[Tensor] = []
        for row, (length, count) in enumerate(zip(lengths, counts, strict=True)):
            blocks, order = order[:count], order[count:]
            self.tables[row, :count] = torch.tensor(blocks, dtype=torch.int32)
            held = _random(device, dtype, 2, length, 2, head_dim)
            self.held.append(held)
            for i, block in enumerate(blocks):
                part = held[:, 16 * i : 16 * i + 16].transpose(1, 2)
                self.caches[:, block, :, : part.shape[2]] = part
        self.rows = torch.arange(len(lengths), dtype=torch.int32, device=device)
        self.lengths = torch.tensor(lengths, dtype=torch.int32, device=device)

    def attended(self, row: int, q: Tensor, scale: float) -> Tensor:
        """Attention in float64 of the last tokens of a sequence, q [Q, H, D]."""
        k, v = (x.double().repeat_interleave(q.shape[1] // 2, dim=1) for x in self.held[row])
        scores = torch.einsum("qhd,khd->hqk", q.double(), k) * scale
        hidden = torch.ones(q.shape[0], k.shape[0], dtype=torch.bool, device=q.device).triu(k.shape[0] - q.shape[0] + 1)
        return torch.einsum("hqk,khd->qhd", scores.masked_fill(hidden, float("-inf")).softmax(-1), v)


Attention = Callable[[Kernels, torch.device, torch.dtype, list[int], int, int], Pair]


def _with(attention: Attention, lengths: list[int], head_dim: int, group: int) -> Measure:
    return lambda kernels, device, dtype: attention(kernels, device, dtype, lengths, head_dim, group)


def _decode(
    kernels: Kernels, device: torch.device, dtype: torch.dtype, lengths: list[int], head_dim: int, group: int
) -> Pair:
    cache, scale = _Cache(lengths, head_dim, device, dtype), head_dim**-0.5
    q = _random(device, dtype, len(lengths), 2 * group, head_dim)
    got = kernels.decode_attention(q, *cache.caches, cache.tables, cache.rows, cache.lengths, scale)
    want = [cache.attended(i, q[i : i + 1], scale) if n else q[i : i + 1].double() * 0 for i, n in enumerate(lengths)]
    return got, torch.cat(want)


def _extend(
    kernels: Kernels, device: torch.device, dtype: torch.dtype, lengths: list[int], head_dim: int, group: int
) -> Pair:
    lengths = [length for length in lengths if length]
    queries = [min(length, 1 + 61 * i) for i, length in enumerate(lengths)]
    cache, scale = _Cache(lengths, head_dim, device, dtype), head_dim**-0.5
    q = _random(device, dtype, sum(queries), 2 * group, head_dim)
    starts = torch.tensor([0, *queries], device=device).cumsum(0).to(torch.int32)
    got = kernels.extend_attention(
        q, *cache.caches, cache.tables, cache.rows, starts, cache.lengths, max(queries), scale
    )
    parts = q.split(queries)
    return got, torch.cat([cache.attended(i, part, scale) for i, part in enumerate(parts)])
