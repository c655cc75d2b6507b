"""Kernels against what the same device does in the same minute: copies, torch's own attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from llmsim.kernels.contract import Kernels
from llmsim.tests.benchmarks.gpu.checks import Check
from llmsim.tests.benchmarks.gpu.timing import Timer

PART = "kernel ratios"
BLOCK = 16
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Shapes of Llama-3.1-8B's attention; small ones where there is no GPU."""

    dtype: torch.dtype = torch.bfloat16
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    hidden: int = 4096
    intermediate: int = 14336
    scale: float = 1.0
    """Of numbers of tokens."""
    has_bounds: bool = True
    """Whether speed is asked for; without a GPU it is only told."""

    def bound(self, value: float) -> float | None:
        """A bound, where there are any."""
        return value if self.has_bounds else None

    def tokens(self, number: int) -> int:
        """So many tokens on a GPU, fewer without."""
        return max(BLOCK, round(number * self.scale) // BLOCK * BLOCK)


class PagedKV:
    """A cache of one layer with every sequence's blocks scattered over it."""

    def __init__(self, sizes: Sizes, lengths: list[int], device: torch.device) -> None:
        counts = [-(-length // BLOCK) for length in lengths]
        num_blocks = sum(counts) + 1
        shape = (num_blocks, sizes.kv_heads, BLOCK, sizes.head_dim)
        self.k = torch.empty(shape, dtype=sizes.dtype, device=device).normal_()
        self.v = torch.empty(shape, dtype=sizes.dtype, device=device).normal_()
        order = torch.randperm(num_blocks - 1, device=device).to(torch.int32) + 1
        self.tables = torch.zeros(len(lengths), max(counts), dtype=torch.int32, device=device)
        at = 0
        for row, count in enumerate(counts):
            self.tables[row, :count] = order[at : at + count]
            at += count
        self.rows = torch.arange(len(lengths), dtype=torch.int32, device=device)
        self.lengths = torch.tensor(lengths, dtype=torch.int32, device=device)
        self.num_bytes = 2 * sum(lengths) * sizes.kv_heads * sizes.head_dim * self.k.element_size()


def ratios(kernels: Kernels, sizes: Sizes, timer: Timer) -> Iterator[Check]:
    """All of them, one after another."""
    device = timer.device
    copy = timer.copy_bytes_per_s(1 << 30 if device.type == "cuda" else 1 << 24)
    yield Check(PART, "copy bandwidth, GB/s", copy / 1e9)
    for batch, length in ((64, 8192), (256, 2048), (16, 32768), (12, 16384)):
        yield _decode(kernels, sizes, timer, [sizes.tokens(length)] * batch, copy, 0.75, 0.90)
    skewed = [sizes.tokens(512)] * 60 + [sizes.tokens(65536)] * 4
    yield _decode(kernels, sizes, timer, skewed, copy, None, None)
    yield _decode(kernels, sizes, timer, [sizes.tokens(32768)], copy, 0.50, 0.65)
    for tokens in (2048, 4096, 8192):
        yield _extend(kernels, sizes, timer, sizes.tokens(tokens), 0, 0.45, 0.70)
    yield _extend(kernels, sizes, timer, sizes.tokens(512), sizes.tokens(8192), 0.40, 0.60)
    yield from _streaming(kernels, sizes, timer, copy)


def _decode(
    kernels: Kernels,
    sizes: Sizes,
    timer: Timer,
    lengths: list[int],
    copy: float,
    must: float | None,
    aim: float | None,
) -> Check:
    """Bytes of K and V a second, as a share of a copy's."""
    must, aim = (must, aim) if sizes.has_bounds else (None, None)
    name = " and ".join(f"{lengths.count(length)} x {length}" for length in dict.fromkeys(lengths))
    caches = [PagedKV(sizes, lengths, timer.device) for _ in range(2)]
    q = torch.empty(len(lengths), sizes.heads, sizes.head_dim, dtype=sizes.dtype, device=timer.device).normal_()
    scale = sizes.head_dim**-0.5

    def launch(kv: PagedKV) -> Tensor:
        return kernels.decode_attention(q, kv.k, kv.v, kv.tables, kv.rows, kv.lengths, scale)

    seconds = timer.seconds([lambda kv=kv: launch(kv) for kv in caches])  # type: ignore[misc]
    note = f"{seconds * 1e6:.0f} us, {caches[0].num_bytes / 1e6:.0f} MB"
    return Check(PART, f"decode {name}: bandwidth / copy", caches[0].num_bytes / seconds / copy, must, aim, note=note)


def _extend(kernels: Kernels, sizes: Sizes, timer: Timer, queries: int, prefix: int, must: float, aim: float) -> Check:
    """Time of torch's fastest backend over ours."""
    kv = PagedKV(sizes, [prefix + queries], timer.device)
    q = torch.empty(queries, sizes.heads, sizes.head_dim, dtype=sizes.dtype, device=timer.device).normal_()
    starts = torch.tensor([0, queries], dtype=torch.int32, device=timer.device)
    scale = sizes.head_dim**-0.5
    ours = timer.seconds(
        [lambda: kernels.extend_attention(q, kv.k, kv.v, kv.tables, kv.rows, starts, kv.lengths, queries, scale)]
    )
    best, theirs = fastest_sdpa(sizes, timer, queries, prefix)
    note = f"{ours * 1e6:.0f} us, {best} {theirs * 1e6:.0f} us"
    return Check(
        PART,
        f"extend {queries} on {prefix}: SDPA / ours",
        theirs / ours,
        sizes.bound(must),
        sizes.bound(aim),
        note=note,
    )


def fastest_sdpa(sizes: Sizes, timer: Timer, queries: int, prefix: int) -> tuple[str, float]:
    """The fastest of torch's backends on the same queries, keys and values, contiguous; its name and seconds."""
    device, total = timer.device, prefix + queries
    q = torch.empty(1, sizes.heads, queries, sizes.head_dim, dtype=sizes.dtype, device=device).normal_()
    k, v = torch.empty(2, 1, sizes.kv_heads, total, sizes.head_dim, dtype=sizes.dtype, device=device).normal_()
    mask = None
    if prefix:
        rows = torch.arange(queries, device=device)[:, None] + prefix
        mask = torch.arange(total, device=device)[None, :] <= rows
    times = {}
    for name, backend in BACKENDS.items():
        try:
            with sdpa_kernel(backend):
                times[name] = timer.seconds(
                    [lambda: scaled_dot_product_attention(q, k, v, mask, is_causal=not prefix, enable_gqa=True)]
                )
        except RuntimeError:
            continue  # this backend does not take these shapes
    best = min(times, key=lambda name: times[name])
    return best, times[best]


def _streaming(kernels: Kernels, sizes: Sizes, timer: Timer, copy: float) -> Iterator[Check]:
    """Kernels that only read and write: bytes a second as a share of a copy's."""
    tokens, device, dtype = sizes.tokens(16384), timer.device, sizes.dtype
    x, residual = torch.empty(2, tokens, sizes.hidden, dtype=dtype, device=device).normal_()
    weight = torch.ones(sizes.hidden, dtype=dtype, device=device)
    size = x.element_size()
    gate_up = torch.empty(tokens, 2 * sizes.intermediate, dtype=dtype, device=device).normal_()
    kv = PagedKV(sizes, [tokens], device)
    k, v = torch.empty(2, tokens, sizes.kv_heads, sizes.head_dim, dtype=dtype, device=device).normal_()
    slots = (kv.tables[0].to(torch.int64)[:, None] * BLOCK + torch.arange(BLOCK, device=device)).flatten()[:tokens]
    measured = {
        "norm": (lambda: kernels.rms_norm(x, weight, 1e-6), 2 * x.numel() * size),
        "norm with residual": (lambda: kernels.add_rms_norm(x, residual, weight, 1e-6), 4 * x.numel() * size),
        "activation": (lambda: kernels.silu_mul(gate_up), 3 * tokens * sizes.intermediate * size),
        "KV write": (lambda: kernels.write_kv(k, v, kv.k, kv.v, slots), 4 * k.numel() * size),
    }
    for name, (launch, num_bytes) in measured.items():
        seconds = timer.seconds([launch])
        note = f"{seconds * 1e6:.0f} us, {num_bytes / 1e6:.0f} MB"
        title = f"{name}, {tokens} tokens: bandwidth / copy"
        yield Check(PART, title, num_bytes / seconds / copy, sizes.bound(0.75), sizes.bound(0.90), note=note)
