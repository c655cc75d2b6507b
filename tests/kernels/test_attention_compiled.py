"""What the compilers make of the attention kernels: nothing spilled, the right units, as many resident as planned."""

from __future__ import annotations

import pytest
import torch

from llmsim.kernels.attention import tuning
from llmsim.tests.support.ahead_of_time import CompiledKernel, compile_launches

KERNELS = {
    "decode": ["_attend", "_reduce"],
    "extend": ["_extend"],
    "split": ["_extend", "_join"],
    "verify": ["_extend"],
}
LAUNCHES = 8
SHARED_BYTES = {"sm_90": 227 * 1024, "gfx942": 64 * 1024}


@pytest.fixture(scope="module")
def kernels() -> list[CompiledKernel]:
    return compile_launches("llmsim.tests.support.attention_launches", ["sm_90", "gfx942"])


def of(kernels: list[CompiledKernel], target: str, *names: str) -> list[CompiledKernel]:
    return [kernel for kernel in kernels if kernel.target == target and kernel.kernel in names]


def test_every_launch_compiles_for_both(kernels: list[CompiledKernel]) -> None:
    for target in SHARED_BYTES:
        launched: dict[str, list[str]] = {}
        for kernel in kernels:
            if kernel.target == target:
                launched.setdefault(kernel.launch, []).append(kernel.kernel)
        assert len(launched) == LAUNCHES
        assert all(names == KERNELS[launch.split()[0]] for launch, names in launched.items())


def test_nothing_is_spilled(kernels: list[CompiledKernel]) -> None:
    assert [kernel for kernel in kernels if kernel.spilled] == []
    on_nvidia = [kernel for kernel in kernels if kernel.target == "sm_90"]
    assert [kernel for kernel in on_nvidia if kernel.instructions["LDL"] or kernel.instructions["STL"]] == []


def test_shared_memory_stays_within_its_limits(kernels: list[CompiledKernel]) -> None:
    assert [kernel for kernel in kernels if kernel.shared_bytes > SHARED_BYTES[kernel.target]] == []


def test_keys_and_values_are_copied_16_bytes_at_a_time(kernels: list[CompiledKernel]) -> None:
    for kernel in of(kernels, "sm_90", "_attend", "_extend"):
        assert kernel.instructions["LDGSTS.128"] == kernel.instructions["LDGSTS"] > 0
    for kernel in of(kernels, "gfx942", "_attend", "_extend"):
        assert kernel.instructions["load_dwordx4"] >= 4  # K and V, ahead of the loop and in it


def test_the_joining_of_parts_reads_16_bytes_at_a_time(kernels: list[CompiledKernel]) -> None:
    for kernel in of(kernels, "sm_90", "_reduce", "_join"):
        assert kernel.instructions["LDG.128"] >= 4


def test_16_bit_products_are_the_tensor_cores(kernels: list[CompiledKernel]) -> None:
    for kernel in of(kernels, "sm_90", "_attend", "_extend"):
        products = kernel.instructions["HGMMA"] + kernel.instructions["HMMA"]
        assert (products > 0) == ("fp32" not in kernel.launch)
    assert all(kernel.instructions["mfma"] for kernel in of(kernels, "gfx942", "_attend", "_extend"))


def test_extend_lets_warpgroup_products_run_on(kernels: list[CompiledKernel]) -> None:
    names = ["extend bf16 128", "extend bf16 64", "split bf16 128"]
    chunks = [kernel for kernel in of(kernels, "sm_90", "_extend") if kernel.launch in names]
    assert len(chunks) == len(names)
    for kernel in chunks:
        # Two products a tile, of four to eight instructions each: waited for once a product, not after each of them.
        assert kernel.instructions["HGMMA"] >= 4 * kernel.instructions["WARPGROUP.DEPBAR"] > 0


@pytest.mark.parametrize("launch", ["decode bf16 128", "decode fp16 64", "decode fp32 128"])
def test_as_many_decode_programs_are_resident_as_the_table_says(
    kernels: list[CompiledKernel], launch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[launch.split()[1]]
    for target, gpu in (("sm_90", "hopper"), ("gfx942", "amd")):
        monkeypatch.setattr(tuning, "gpu_class", lambda device, gpu=gpu: gpu)
        config = tuning.decode_config(torch.device("meta"), int(launch.split()[2]), dtype, group=4)
        (kernel,) = (kernel for kernel in of(kernels, target, "_attend") if kernel.launch == launch)
        assert kernel.num_warps == config.num_warps
        assert config.programs_per_multiprocessor <= resident(kernel)


def resident(kernel: CompiledKernel) -> int:
    """Programs that a multiprocessor has room for: registers come in eights, shared memory on NVIDIA with 1 KB more."""
    registers = -(-kernel.registers // 8) * 8
    if kernel.target == "sm_90":
        return min(65536 // (registers * 32 * kernel.num_warps), 228 * 1024 // (kernel.shared_bytes + 1024))
    waves = 4 * min(8, 512 // registers)  # four processors a compute unit
    return min(waves // kernel.num_warps, 64 * 1024 // kernel.shared_bytes)
