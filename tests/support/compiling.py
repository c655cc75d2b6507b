"""The process in which launches compile: `python -m llmsim.tests.support.compiling MODULE TARGET…` prints JSON.

Triton carries LLVM, ptxas and the disassemblers in its wheel, so no GPU, driver or toolkit is needed.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
NVIDIA_TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"

NVIDIA_INSTRUCTIONS = {
    "HGMMA": r"\bHGMMA\b",
    "HMMA": r"\bHMMA\b",
    "WARPGROUP.DEPBAR": r"\bWARPGROUP\.DEPBAR\b",
    "LDG": r"\bLDG\.E",
    "LDG.128": r"\bLDG\.E[.\w]*\.128",
    "LDGSTS": r"\bLDGSTS\.E",
    "LDGSTS.128": r"\bLDGSTS\.E[.\w]*\.128",
    "STG": r"\bSTG\.E",
    "STG.128": r"\bSTG\.E[.\w]*\.128",
    "LDL": r"\bLDL\b",
    "STL": r"\bSTL\b",
}
AMD_INSTRUCTIONS = {
    "mfma": r"\bv_mfma_",
    "load": r"\b(?:global|buffer)_load_",
    "load_dwordx4": r"\b(?:global|buffer)_load_dwordx4\b",
    "store": r"\b(?:global|buffer)_store_",
    "store_dwordx4": r"\b(?:global|buffer)_store_dwordx4\b",
}


class AbsentGPU:
    """A driver that says what to compile for and can launch nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def get_current_target(self) -> GPUTarget:
        """The GPU that is not there."""
        return TARGETS[self._name]

    def get_current_device(self) -> str:
        """Compiled kernels are kept by device: each target has its own."""
        return self._name

    def get_current_stream(self, device: object) -> int:
        """No stream."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """Where the tensors of the launches are."""
        return torch.device("cpu")

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(f"there is no GPU: nothing can ask its driver for {name}")


@contextmanager
def compiling_for(target: str) -> Iterator[list[Any]]:
    """Within it a launch compiles for the target and runs nothing; yields the list that the kernels come into."""
    kernels: list[Any] = []
    launch, driver = JITFunction.run, triton.runtime.driver
    before = driver._active

    def compile_only(function: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        kernels.append(launch(function, *arguments, grid=grid, warmup=True, **options))
        return kernels[-1]

    driver.set_active(AbsentGPU(target))
    JITFunction.run = compile_only
    try:
        yield kernels
    finally:
        JITFunction.run, driver._active = launch, before


def described(launch: str, target: str, kernel: Any) -> dict[str, Any]:
    """The fields of `ahead_of_time.CompiledKernel`."""
    metadata = kernel.metadata
    return {
        "launch": launch,
        "kernel": metadata.name,
        "target": target,
        "num_warps": metadata.num_warps,
        "num_stages": metadata.num_stages,
        "shared_bytes": metadata.shared,
        **(_nvidia(kernel.asm["cubin"]) if metadata.target.backend == "cuda" else _amd(kernel.asm["amdgcn"])),
    }


def _nvidia(cubin: bytes) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage = _output("cuobjdump", "-res-usage", file.name)
        code = _output("nvdisasm", "-c", file.name)
    registers, stack, local = (_number(rf"\b{name}:(\d+)", usage) for name in ("REG", "STACK", "LOCAL"))
    return {"registers": registers, "spilled": stack + local, "instructions": _counts(NVIDIA_INSTRUCTIONS, code)}


def _amd(code: str) -> dict[str, Any]:
    return {
        "registers": _number(r"\.vgpr_count:\s+(\d+)", code),
        "spilled": _number(r"\.vgpr_spill_count:\s+(\d+)", code),
        "instructions": _counts(AMD_INSTRUCTIONS, code),
    }


def _output(tool: str, *arguments: str) -> str:
    return subprocess.run([NVIDIA_TOOLS / tool, *arguments], capture_output=True, text=True, check=True).stdout


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found is not None, f"{pattern} is not in what the tool says:\n{text[:2000]}"
    return int(found[1])


def _counts(patterns: dict[str, str], code: str) -> dict[str, int]:
    return {name: len(re.findall(pattern, code)) for name, pattern in patterns.items()}


def main(module: str, *targets: str) -> None:
    """Run all launches of the module for every target."""
    launches = importlib.import_module(module).LAUNCHES
    found = []
    for target in targets:
        for name, launch in launches.items():
            with compiling_for(target) as kernels:
                launch()
            found += [described(name, target, kernel) for kernel in kernels]
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
