"""The devices of this machine: found by name, with what they are called and how much memory they have."""

from __future__ import annotations

import gc
import os
import re
from dataclasses import dataclass
from importlib import metadata

import torch

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
"""What the engine computes in, by the name that a user gives."""


class DeviceError(ValueError):
    """A device that is not there, or has not the memory; one line."""


@dataclass(frozen=True, slots=True)
class FoundDevice:
    """A device that is there."""

    device: torch.device
    name: str
    total_bytes: int
    free_bytes: int
    """Now: others may use the device too."""

    @property
    def is_gpu(self) -> bool:
        """Whether it has memory of its own."""
        return self.device.type == "cuda"


def find_device(asked: str) -> FoundDevice:
    """`cpu`, `cuda` (a GPU, of AMD's too), `cuda:1`, or `auto`: a GPU where torch has one. Raises DeviceError."""
    if re.fullmatch(r"auto|cpu|cuda(:\d+)?", asked) is None:
        raise DeviceError(f"'{asked}' is unknown; choose auto, cpu, cuda, cuda:1 …")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if asked == "cpu" or (asked == "auto" and not count):
        return FoundDevice(torch.device("cpu"), "cpu", _host_bytes("SC_PHYS_PAGES"), _free_host_bytes())
    if not count:
        raise DeviceError(f"torch {torch.__version__} finds no GPU here; choose cpu, or install torch for your GPU")
    index = int(asked.partition(":")[2] or 0)
    if index >= count:
        raise DeviceError(f"there is no {asked}: torch finds {count} GPU{'s' * (count > 1)}, counted from cuda:0")
    device = torch.device("cuda", index)
    _give_back()
    free_bytes, total_bytes = torch.cuda.mem_get_info(device)
    return FoundDevice(device, torch.cuda.get_device_name(device), total_bytes, free_bytes)


def _give_back() -> None:
    """Free the GPU memory that torch keeps of what this process has dropped, an engine before, say."""
    gc.collect()
    torch.cuda.empty_cache()


def compute_on(threads: int | None) -> None:
    """Let so many threads of a CPU compute from now on, in the whole process; None: as many as before."""
    if threads is not None:
        torch.set_num_threads(threads)


def num_threads() -> int:
    """Those that compute on a CPU."""
    return torch.get_num_threads()


def versions() -> dict[str, str | None]:
    """Of torch and of triton, None where it is not installed."""
    found: dict[str, str | None] = {"torch": torch.__version__}
    try:
        found["triton"] = metadata.version("triton")
    except metadata.PackageNotFoundError:
        found["triton"] = None
    return found


def _free_host_bytes() -> int:
    """Memory that programs can still take: Linux tells; elsewhere half of what there is."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return _host_bytes("SC_PHYS_PAGES") // 2


def _host_bytes(pages: str) -> int:
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
