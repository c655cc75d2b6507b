"""Which backend a device gets, and what is said where it is not the one asked for."""

from __future__ import annotations

import pytest
import torch

from llmsim.kernels import choosing
from llmsim.kernels.choosing import KernelsUnavailable, kernels_for

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "find_spec", lambda name: None)


def silent(sentence: str) -> None:
    raise AssertionError(f"a warning for nothing: {sentence}")


def test_each_device_gets_its_backend_without_a_word() -> None:
    assert kernels_for(CPU, "auto", silent).name == "torch"
    assert kernels_for(GPU, "auto", silent).name == "triton"
    assert kernels_for(GPU, "triton", silent).name == "triton"
    assert kernels_for(GPU, "torch", silent).name == "torch"


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        ({"head_dim": 96}, "the model's heads have 96 dimensions, triton's kernels 64 or 128"),
        ({"block_size": 24}, "blocks of 24 tokens are no power of two, as triton's kernels want them"),
    ],
)
def test_shapes_that_triton_has_not_are_served_by_torch_and_told(shapes: dict[str, int], says: str) -> None:
    told: list[str] = []
    assert kernels_for(GPU, "auto", told.append, **shapes).name == "torch"
    assert told == [f"the torch backend computes the kernels, more slowly: {says}"]
    assert kernels_for(GPU, "torch", silent, **shapes).name == "torch"
    assert kernels_for(CPU, "auto", silent, **shapes).name == "torch"
    with pytest.raises(KernelsUnavailable, match=f"backend triton: {says}; choose auto or torch"):
        kernels_for(GPU, "triton", silent, **shapes)


@pytest.mark.usefixtures("without_triton")
def test_gpu_without_triton_is_served_by_torch_and_told() -> None:
    told: list[str] = []
    assert kernels_for(GPU, "auto", told.append).name == "torch"
    assert told == ["the torch backend computes the kernels, more slowly: triton is not installed (pip install triton)"]
    assert kernels_for(GPU, "torch", silent).name == "torch"
    assert kernels_for(CPU, "auto", silent).name == "torch"


@pytest.mark.usefixtures("without_triton")
def test_triton_that_is_not_installed_is_an_error_of_one_line() -> None:
    with pytest.raises(KernelsUnavailable) as error:
        kernels_for(GPU, "triton", silent)
    assert str(error.value) == ("backend triton: triton is not installed (pip install triton); choose auto or torch")


def test_triton_on_a_cpu_is_an_error_of_one_line() -> None:
    with pytest.raises(KernelsUnavailable) as error:
        kernels_for(CPU, "triton", silent)
    assert str(error.value) == "backend triton: the device is cpu, and triton compiles for GPUs; choose auto or torch"
