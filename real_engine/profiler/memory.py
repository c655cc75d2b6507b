"""How a device says that it has no room for a step, and how much of its free memory steps may take."""

from __future__ import annotations

import torch

SHARE = 0.8
"""Of the free memory that the KV of a step may take; the rest is for what the step computes."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch, on either kind of device, could not allocate. A CPU's allocator raises a plain RuntimeError."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or any(
        said in str(error) for said in ("can't allocate memory", "out of memory")
    )
