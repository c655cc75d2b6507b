"""A step that the device cannot carry out, or that yields no numbers, is named."""

from __future__ import annotations

from typing import NoReturn

import pytest
import torch
from triton.runtime.errors import OutOfResources

from llmsim.kernels.torch_backend import TorchKernels
from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.model_spec import ModelSpec
from llmsim.policies.core.request import Output
from llmsim.real_engine import building
from llmsim.real_engine.contract import StepFailed
from llmsim.real_engine.devices import DeviceError, find_device
from llmsim.real_engine.executor import RealExecutor
from llmsim.real_engine.model.loading import load_model
from llmsim.real_engine.model.transformer import Transformer
from llmsim.tests.support.driven_core import VLLM, request_of

SPEC = ModelSpec("small", 1, 32, 48, 2, 1, 16, 64, 512)
CONFIG = EngineConfig(num_blocks=10, block_size=4, max_num_seqs=4, max_model_len=64)


@pytest.fixture
def model() -> Transformer:
    return load_model(SPEC, device=torch.device("cpu"), dtype=torch.float32, seed=0, kernels=TorchKernels())


def first_step(executor: RealExecutor) -> None:
    """Launch and wait for the first step of a request."""
    core = EngineCore(CONFIG, Policies.of(VLLM), tells_grants=True)
    request = request_of("a", 5, 3)
    executor.expect(request, Output(3))
    core.add_request(request, 0)
    plan = core.plan_step(0)
    assert plan is not None
    executor.launch(plan).wait()


@pytest.mark.parametrize("part", ["embedding", "lm_head"])
def test_a_step_that_yields_a_nan_is_named(model: Transformer, part: str) -> None:
    with torch.no_grad():
        getattr(model.weights, part)[3:].fill_(float("nan"))
    executor = RealExecutor(model, CONFIG)
    with pytest.raises(StepFailed, match="step 0: the model yielded numbers that are not finite"):
        first_step(executor)
    executor.close()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RuntimeError("CUDA error: an illegal memory access\nCompile with …"), "CUDA error: an illegal memory access"),
        (OutOfResources(300_000, 232_448, "shared memory"), "out of resource: shared memory, Required: 300000, .*"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_a_step_that_breaks_on_the_device_is_named(
    model: Transformer, monkeypatch: pytest.MonkeyPatch, error: Exception, says: str
) -> None:
    def broken(*_: object, **__: object) -> NoReturn:
        raise error

    executor = RealExecutor(model, CONFIG)
    monkeypatch.setattr(executor._runner, "run", broken)
    with pytest.raises(StepFailed, match=f"^step 0: {says}$"):
        first_step(executor)
    executor.close()


def test_a_step_that_cannot_be_launched_is_named(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> NoReturn:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    executor = RealExecutor(model, CONFIG)
    monkeypatch.setattr(executor._stream, "send", full)
    with pytest.raises(StepFailed, match="step 0: CUDA out of memory"):
        first_step(executor)
    executor.close()


def test_a_model_that_a_device_cannot_run_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> NoReturn:
        raise OutOfResources(300_000, 101_376, "shared memory")

    monkeypatch.setattr(building, "RealExecutor", broken)
    with pytest.raises(DeviceError, match=r"^cpu cannot run the model: out of resource: shared memory"):
        building.build_engine(
            *(SPEC, CONFIG, find_device("cpu")),
            dtype="fp32",
            backend="auto",
            outputs="forced",
            seed=0,
            random=True,
            warn=print,
        )
