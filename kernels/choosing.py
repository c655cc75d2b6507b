"""Which backend serves a device."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Literal

import torch

from .contract import Kernels
from .torch_backend import TorchKernels

Backend = Literal["auto", "triton", "torch"]
HEAD_DIMS = (64, 128)


class KernelsUnavailable(ValueError):
    """The backend that was asked for cannot serve the device; the message says why, in one line."""


def kernels_for(
    device: torch.device,
    backend: Backend,
    warn: Callable[[str], None],
    *,
    head_dim: int = 128,
    block_size: int = 16,
) -> Kernels:
    """The kernels for a device: triton's on a GPU where it is installed, else torch's.

    `head_dim` of the model and `block_size` of the KV cache must be such as triton's kernels have.
    A GPU served by torch although the choice was free is told through `warn`, in one sentence.
    """
    if backend == "torch":
        return TorchKernels()
    obstacle = _obstacle(device) or _misfit(head_dim, block_size)
    if obstacle is None:
        from .triton_backend import TritonKernels  # imports triton, which need not be there

        return TritonKernels()
    if backend == "triton":
        raise KernelsUnavailable(f"backend triton: {obstacle}; choose auto or torch")
    if device.type == "cuda":
        warn(f"the torch backend computes the kernels, more slowly: {obstacle}")
    return TorchKernels()


def _misfit(head_dim: int, block_size: int) -> str | None:
    """Why triton's kernels have not these shapes; None where they have."""
    if head_dim not in HEAD_DIMS:
        return f"the model's heads have {head_dim} dimensions, triton's kernels {' or '.join(map(str, HEAD_DIMS))}"
    if block_size & (block_size - 1):
        return f"blocks of {block_size} tokens are no power of two, as triton's kernels want them"
    return None


def _obstacle(device: torch.device) -> str | None:
    """Why triton cannot serve this device; None where it can. (On ROCm, torch calls the device `cuda` as well.)"""
    if device.type != "cuda":
        return f"the device is {device.type}, and triton compiles for GPUs"
    if find_spec("triton") is None:
        return "triton is not installed (pip install triton)"
    return None
