"""CUDA graphs of decode steps, as far as a CPU can tell: what they may hold, and on which device they are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from llmsim.kernels.contract import Kernels
from llmsim.kernels.torch_backend import TorchKernels
from llmsim.kernels.triton_backend import TritonKernels
from llmsim.policies.core.config import EngineConfig
from llmsim.policies.core.model_spec import ModelSpec
from llmsim.real_engine import executor as executor_module
from llmsim.real_engine.executor import RealExecutor
from llmsim.real_engine.graphs import buckets, can_capture
from llmsim.real_engine.model.loading import load_model

SPEC = ModelSpec("small", 2, 32, 48, 2, 1, 16, 64, 512)
CONFIG = EngineConfig(num_blocks=10, block_size=4, max_num_seqs=4, max_model_len=64)
READS_ON_THE_HOST = ("_local_scalar_dense", "nonzero", "equal", "is_nonzero")


class HostReads(TorchDispatchMode):
    """Notes each operation whose outcome, or whose outcome's shape, the host must know: a GPU would be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in READS_ON_THE_HOST:
            self.found.append(str(func))
        return func(*args, **(kwargs or {}))


class ByShapeAlone(TorchKernels):
    """Stands in for kernels that run on a GPU: outputs of the right shapes."""

    def decode_attention(self, q: torch.Tensor, *_: object) -> torch.Tensor:
        return torch.zeros(q.shape)

    def write_kv(self, *_: object) -> None:
        pass


def executor_on(kernels: Kernels) -> RealExecutor:
    model = load_model(SPEC, device=torch.device("cpu"), dtype=torch.float32, seed=0, kernels=kernels)
    return RealExecutor(model, CONFIG)


def host_reads(kernels: Kernels) -> list[str]:
    """What a step for a padded batch of one reads on the host."""
    executor = executor_on(kernels)
    executor._state.members[0] = 1
    with torch.inference_mode(), HostReads() as reads:
        executor._runner.decode(2, is_random=False)
    executor.close()
    return reads.found


def test_only_kernels_that_never_wait_stand_in_graphs() -> None:
    gpu = torch.device("cuda")
    assert can_capture(gpu, TritonKernels())
    assert not can_capture(torch.device("cpu"), TritonKernels())
    assert not can_capture(gpu, TorchKernels())
    assert host_reads(TorchKernels())  # which is why


def test_a_step_of_decodes_itself_reads_nothing_on_the_host() -> None:
    assert host_reads(ByShapeAlone()) == []


def test_graphs_are_made_on_the_models_own_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton launches on the current device, which is `cuda:0` unless told."""
    current: list[torch.device] = []
    seen: list[list[torch.device]] = []

    @contextmanager
    def entered(device: torch.device) -> Iterator[None]:
        current.append(device)
        yield
        current.pop()

    executor = executor_on(TorchKernels())
    monkeypatch.setattr(torch.cuda, "device", entered)
    monkeypatch.setattr(executor_module, "DecodeGraphs", lambda decode, max_rows: seen.append(list(current)))
    executor._capture(4)
    executor.close()
    assert seen == [[torch.device("cpu")]]


@pytest.mark.parametrize("max_rows", [1, 2, 3, 7, 31, 256, 1000])
def test_every_batch_has_a_graph_of_its_size_or_little_more(max_rows: int) -> None:
    sizes = buckets(max_rows)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == max_rows
    for rows in range(1, max_rows + 1):
        fitting = next(size for size in sizes if size >= rows)
        assert fitting - rows < max(4, rows / 8 + 1), (rows, fitting)
