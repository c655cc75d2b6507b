"""Memory of a device: what has been dropped is free again before anybody asks how much there is."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from llmsim.kernels.torch_backend import TorchKernels
from llmsim.policies.core.config import EngineConfig
from llmsim.policies.core.model_spec import ModelSpec
from llmsim.real_engine.devices import find_device
from llmsim.real_engine.executor import RealExecutor
from llmsim.real_engine.model.loading import load_model
from llmsim.real_engine.profiler.bench import StepBench

SPEC = ModelSpec("small", 1, 32, 48, 2, 1, 16, 64, 512)
CONFIG = EngineConfig(num_blocks=10, block_size=4, max_num_seqs=4, max_model_len=64)


class FakeGpu:
    """Half of whose memory torch keeps for later, until it is told to give it back."""

    def __init__(self) -> None:
        self.kept = 50

    def empty_cache(self) -> None:
        self.kept = 0

    def mem_get_info(self, _: torch.device) -> tuple[int, int]:
        return 100 - self.kept, 100


def test_memory_that_torch_keeps_for_later_counts_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = FakeGpu()
    for name, value in {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "get_device_name": lambda _: "a GPU",
        "empty_cache": gpu.empty_cache,
        "mem_get_info": gpu.mem_get_info,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    found = find_device("auto")
    assert (found.name, found.free_bytes, found.total_bytes, found.is_gpu) == ("a GPU", 100, 100, True)


def test_an_engine_that_is_closed_keeps_no_kv_even_before_garbage_is_collected() -> None:
    model = load_model(SPEC, device=torch.device("cpu"), dtype=torch.float32, seed=0, kernels=TorchKernels())
    executor = RealExecutor(model, CONFIG)
    kv, state = weakref.ref(executor._kv.k[0]), weakref.ref(executor._state.tables)
    gc.disable()
    try:
        executor.close()
        assert (kv(), state()) == (None, None)
    finally:
        gc.enable()


def test_a_bench_that_is_dropped_keeps_no_kv_even_before_garbage_is_collected() -> None:
    model = load_model(SPEC, device=torch.device("cpu"), dtype=torch.float32, seed=0, kernels=TorchKernels())
    bench = StepBench(model, 10, 2, 64)
    kv = weakref.ref(bench._kv.k[0])
    gc.disable()
    try:
        del bench
        assert kv() is None
    finally:
        gc.enable()
