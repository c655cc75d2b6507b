"""One kernel at a time: which bound holds, and which efficiency."""

import dataclasses

import pytest

from llmsim.policies.core.gpu_spec import GpuSpec
from llmsim.sim.cost_model.kernel import Kernel
from llmsim.sim.cost_model.roofline import Efficiencies, Roofline

GPU = GpuSpec(
    name="round",
    memory_bytes=2**30,
    bandwidth_bytes_per_s=1e12,
    bf16_flop_per_s=1e14,
    fp8_flop_per_s=2e14,
    interconnect_bytes_per_s=800e9,
)
NO_GAP = Efficiencies(kernel_gap_s=0.0)
ROOF = Roofline(GPU, NO_GAP)


def test_efficiencies_are_those_chosen_beforehand():
    chosen = Efficiencies()
    assert (chosen.weights, chosen.kv) == (0.80, 0.75)
    assert (chosen.bf16, chosen.fp8, chosen.attention) == (0.65, 0.55, 0.45)
    assert (chosen.host_step_s, chosen.host_request_s) == (1e-3, 8e-6)
    assert (chosen.all_reduce_latency_s, chosen.all_reduce_bytes_per_s) == (12e-6, 300e9)


@pytest.mark.parametrize(
    ("kernel", "seconds"),
    [
        (Kernel("gemm", "linear", 1, flops=10**9, num_bytes=10**9), 1e-3 / 0.80),
        (Kernel("gemm", "linear", 1, flops=10**12, num_bytes=10**9), 1e-2 / 0.65),
        (Kernel("gemm", "linear", 1, flops=10**12, num_bytes=10**9, dtype="fp8"), 5e-3 / 0.55),
        (Kernel("attention", "attention", 1, flops=10**9, num_bytes=10**9), 1e-3 / 0.75),
        (Kernel("attention", "attention", 1, flops=10**12, num_bytes=10**9), 1e-2 / 0.45),
        (Kernel("kv_write", "kv_write", 1, num_bytes=10**9), 1e-3 / 0.75),
        (Kernel("norm", "elementwise", 1, num_bytes=10**9), 1e-3 / 0.80),
        (Kernel("all_reduce", "all_reduce", 1, link_bytes=3 * 10**9), 12e-6 + 1e-2),
    ],
)
def test_a_launch_takes_its_slower_bound_at_the_stated_share(kernel, seconds):
    assert ROOF.launch_s(kernel) == pytest.approx(seconds, rel=1e-12)


def test_every_launch_adds_the_gap():
    kernel = Kernel("norm", "elementwise", 1, num_bytes=10**9)
    gap = Roofline(GPU, Efficiencies()).launch_s(kernel) - ROOF.launch_s(kernel)
    assert gap == pytest.approx(0.5e-6)


def test_an_all_reduce_is_no_faster_than_one_direction_of_the_link():
    slow = Roofline(dataclasses.replace(GPU, interconnect_bytes_per_s=64e9), NO_GAP)
    kernel = Kernel("all_reduce", "all_reduce", 1, link_bytes=32 * 10**9)
    assert slow.launch_s(kernel) == pytest.approx(1.0 + 12e-6)


def test_a_gpu_without_a_link_cannot_reduce():
    alone = Roofline(dataclasses.replace(GPU, interconnect_bytes_per_s=None), NO_GAP)
    with pytest.raises(ValueError, match="round has no link to other GPUs; tensor_parallel must be 1"):
        alone.launch_s(Kernel("all_reduce", "all_reduce", 1, link_bytes=1))


@pytest.mark.parametrize(
    "change",
    [
        {"weights": 0.0},
        {"kv": 1.1},
        {"attention": float("nan")},
        {"kernel_gap_s": -1e-6},
        {"host_step_s": float("inf")},
        {"all_reduce_bytes_per_s": 0.0},
    ],
)
def test_efficiencies_out_of_range_are_refused(change):
    (name,) = change
    with pytest.raises(ValueError, match=name):
        Efficiencies(**change)
