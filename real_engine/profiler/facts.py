"""What a device calls itself, and how fast it runs at the moment."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import torch

from ..devices import versions

CPUINFO = Path("/proc/cpuinfo")


def device_name(device: torch.device) -> str:
    """As the driver says, of a CPU as the kernel does."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_properties(device).name)
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def clock(device: torch.device) -> str | None:
    """The clock now; None where nothing tells."""
    if device.type == "cuda":
        return _gpu_clock(device)
    mhz = _cpuinfo("cpu MHz")
    return f"{float(mhz):.0f} MHz" if mhz else None


def software() -> str:
    """What computes: torch, and triton where there is one."""
    return ", ".join(f"{name} {version}" for name, version in versions().items() if version is not None)


def _gpu_clock(device: torch.device) -> str | None:
    asked = ["nvidia-smi", f"--id={device.index or 0}", "--query-gpu=clocks.sm", "--format=csv,noheader"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def _cpuinfo(key: str) -> str | None:
    """The first processor's."""
    if not CPUINFO.is_file():
        return None
    lines = CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    values = (line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == key)
    return next(values, None)
