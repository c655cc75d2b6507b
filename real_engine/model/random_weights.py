"""Seeded random weights, the same on every device.

A weight is a hash of its tensor's name, its place in it and the seed, so that neither the device nor the order of
filling counts, and eight billion take a GPU about a second. Values are uniform, of the standard deviation that keeps
activations near one through any number of layers: 1 / sqrt(inputs) for a linear layer (LeCun et al., Efficient
BackProp, 1998), less by sqrt(2 * layers) where it adds to the residual stream (Radford et al., Language Models are
Unsupervised Multitask Learners, 2019, section 2.3). Norms are one, biases zero.
"""

from __future__ import annotations

import hashlib
import math

import torch
from torch import Tensor

from ...policies.core.model_spec import ModelSpec
from .weights import Weights, places

CHUNK = 2**20
"""Weights made at a time: their hashes are all the memory that is needed beside the model."""

ADDS_TO_RESIDUAL = ("o_proj.weight", "down_proj.weight")


def fill_randomly(weights: Weights, spec: ModelSpec, seed: int) -> None:
    """Write every weight; nothing waits for the device."""
    for name, view in places(weights, spec):
        if view.dim() == 1:
            view.fill_(0 if name.endswith(".bias") else 1)
        else:
            residual = 2 * spec.num_layers if name.endswith(ADDS_TO_RESIDUAL) else 1
            _fill_uniformly(view, f"{seed}/{name}", deviation=1 / math.sqrt(view.shape[1] * residual))


def _fill_uniformly(view: Tensor, key: str, deviation: float) -> None:
    """Uniform between -sqrt(3) and sqrt(3) deviations. `view` must be contiguous and below 2^31 values."""
    first, second = _keys(key)
    flat = view.view(-1)
    for start in range(0, flat.numel(), CHUNK):
        end = min(start + CHUNK, flat.numel())
        bits = _hashes(start, end, first, second, view.device)
        flat[start:end].copy_(bits.to(torch.float32).mul_(deviation * math.sqrt(3) / 2**31))


def _keys(text: str) -> tuple[int, int]:
    """Two 32-bit numbers, signed as torch wants them."""
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:4], signed=True), int.from_bytes(digest[4:8], signed=True)


def _hashes(start: int, end: int, first: int, second: int, device: torch.device) -> Tensor:
    """[end - start] int32: the finaliser of MurmurHash3 (Appleby, public domain) over the places, keyed twice.

    Products wrap. torch shifts int32 with its sign, so the bits that come in are masked.
    """
    bits = torch.arange(start, end, dtype=torch.int32, device=device).bitwise_xor_(first)
    _mix_in_upper(bits, 16).mul_(0x85EBCA6B - 2**32).bitwise_xor_(second)
    _mix_in_upper(bits, 13).mul_(0xC2B2AE35 - 2**32)
    return _mix_in_upper(bits, 16)


def _mix_in_upper(bits: Tensor, by: int) -> Tensor:
    return bits.bitwise_xor_((bits >> by).bitwise_and_(2 ** (32 - by) - 1))
