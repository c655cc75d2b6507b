"""What the compilers make of the kernels: nothing spilled, memory moved 16 bytes at a time, on GPUs not at hand."""

from __future__ import annotations

import pytest

from llmsim.tests.support.ahead_of_time import CompiledKernel, compile_launches

WIDE_STORES = {"rms_norm", "add_rms_norm", "qk_norm", "rope", "write_kv", "silu_mul"}
WIDE_LOADS = {*WIDE_STORES, "greedy", "sample"}
SHARED_BYTES = {"sm_90": 227 * 1024, "gfx942": 64 * 1024}


@pytest.fixture(scope="module")
def kernels() -> list[CompiledKernel]:
    return compile_launches("llmsim.tests.support.kernel_launches", ["sm_90", "gfx942"])


def launches_with(kernels: list[CompiledKernel], target: str, *instructions: str) -> set[str]:
    """Which launches have a kernel with one of these instructions."""
    on_target = [kernel for kernel in kernels if kernel.target == target]
    return {kernel.launch for kernel in on_target if any(kernel.instructions[name] for name in instructions)}


def test_every_kernel_compiles_for_both(kernels: list[CompiledKernel]) -> None:
    names = {target: [kernel.kernel for kernel in kernels if kernel.target == target] for target in SHARED_BYTES}
    assert names["sm_90"] == names["gfx942"]
    assert len(names["sm_90"]) == 6 + 2 + 4  # greedy launches two, sample four


def test_nothing_is_spilled(kernels: list[CompiledKernel]) -> None:
    assert [kernel for kernel in kernels if kernel.spilled] == []
    assert launches_with(kernels, "sm_90", "LDL", "STL") == set()


def test_memory_is_read_and_written_16_bytes_at_a_time(kernels: list[CompiledKernel]) -> None:
    assert launches_with(kernels, "sm_90", "LDG.128", "LDGSTS.128") == WIDE_LOADS
    assert launches_with(kernels, "gfx942", "load_dwordx4") == WIDE_LOADS
    assert launches_with(kernels, "sm_90", "STG.128") == WIDE_STORES
    assert launches_with(kernels, "gfx942", "store_dwordx4") == WIDE_STORES


def test_shared_memory_stays_within_its_limits(kernels: list[CompiledKernel]) -> None:
    assert [kernel for kernel in kernels if kernel.shared_bytes > SHARED_BYTES[kernel.target]] == []
