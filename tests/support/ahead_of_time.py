"""Compiles kernels for GPUs that are not there, and tells what became of them.

A module of launches defines `LAUNCHES`, a mapping from names to functions without arguments that call host wrappers on
CPU tensors. One process of its own, which compiles instead of interpreting, runs them all once for each target: each
launch of a kernel compiles it with the specialisation that a real launch would have.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Target = Literal["sm_80", "sm_90", "sm_100", "gfx942"]


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """What the compiler made of one launch."""

    launch: str
    kernel: str
    target: Target
    num_warps: int
    num_stages: int
    registers: int
    """A thread; on AMD the vector registers of a lane."""
    spilled: int
    """NVIDIA: bytes of stack and local memory a thread; AMD: vector registers spilled. 0 is wanted."""
    shared_bytes: int
    instructions: dict[str, int]
    """How many of each stand in the code; which are counted is said in `compiling`."""


def compile_launches(module: str, targets: Sequence[Target]) -> list[CompiledKernel]:
    """Every kernel that the launches of a module (`llmsim.tests.…`) launch, for each of the targets."""
    command = [sys.executable, "-m", "llmsim.tests.support.compiling", module, *targets]
    with tempfile.TemporaryDirectory(prefix="llmsim-triton-") as cache:
        environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{module} does not compile:\n{done.stderr}")
    return [CompiledKernel(**kernel) for kernel in json.loads(done.stdout)]
