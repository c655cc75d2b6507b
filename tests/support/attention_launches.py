"""Launches of attention for ahead-of-time compilation, with what the table of settings chooses for each target.

The tensors have no memory (`meta`), so a wrapper that read one on the host would fail: none waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from llmsim.kernels.attention.decode import decode_attention
from llmsim.kernels.attention.decode_plan import DecodeWorkspace
from llmsim.kernels.attention.extend import extend_attention
from llmsim.kernels.attention.tuning import extend_config

META = torch.device("meta")
SEQUENCES, HEADS, KV_HEADS = 64, 32, 8
BLOCKS = 1024


def integers(*shape: int) -> Tensor:
    """What nobody reads, int32."""
    return torch.empty(shape, dtype=torch.int32, device=META)


def inputs(num_tokens: int, head_dim: int, block_size: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Queries as a view of fused rows, one layer's cache, block tables and rows."""
    fused = torch.empty(num_tokens, HEADS + 2 * KV_HEADS, head_dim, dtype=dtype, device=META)
    k_cache, v_cache = (torch.empty(BLOCKS, KV_HEADS, block_size, head_dim, dtype=dtype, device=META) for _ in range(2))
    return fused[:, :HEADS], k_cache, v_cache, integers(SEQUENCES, 512), integers(SEQUENCES)


def decode(head_dim: int, block_size: int, dtype: torch.dtype) -> None:
    """A decode of all sequences."""
    workspace = DecodeWorkspace.allocate(SEQUENCES, HEADS, KV_HEADS, head_dim, dtype, META)
    decode_attention(*inputs(SEQUENCES, head_dim, block_size, dtype), integers(SEQUENCES), 0.1, workspace)


def extend(chunk: int, head_dim: int, block_size: int, dtype: torch.dtype, num_splits: int = 1) -> None:
    """A chunk of every sequence."""
    cached = inputs(SEQUENCES * chunk, head_dim, block_size, dtype)
    config = extend_config(META, head_dim, dtype, HEADS // KV_HEADS, SEQUENCES * chunk * HEADS, 4 * chunk)
    config = replace(config, num_splits=num_splits)
    extend_attention(*cached, integers(SEQUENCES + 1), integers(SEQUENCES), chunk, 0.1, config)


LAUNCHES: dict[str, Callable[[], None]] = {
    "decode bf16 128": partial(decode, 128, 16, torch.bfloat16),
    "decode fp16 64": partial(decode, 64, 256, torch.float16),
    "decode fp32 128": partial(decode, 128, 16, torch.float32),
    "extend bf16 128": partial(extend, 512, 128, 16, torch.bfloat16),
    "extend bf16 64": partial(extend, 512, 64, 256, torch.bfloat16),
    "extend fp32 128": partial(extend, 512, 128, 16, torch.float32),
    "split bf16 128": partial(extend, 16, 128, 16, torch.bfloat16, num_splits=8),
    "verify bf16 128": partial(extend, 4, 128, 16, torch.bfloat16),
}
