"""What a device has room for, and how one that has not says so."""

from __future__ import annotations

from pathlib import Path

import torch

SHARE = 0.8
"""Of the free memory that the KV of a step may take; the rest is for what the step computes."""


def free_bytes(device: torch.device) -> int:
    """Memory that nobody uses."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return _meminfo("MemAvailable")


def total_bytes(device: torch.device) -> int:
    """All of it."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return _meminfo("MemTotal")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch, on either kind of device, could not allocate. A CPU's allocator raises a plain RuntimeError."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(error)


def _meminfo(key: str) -> int:
    """Linux says it in KiB."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/meminfo has no {key}")
