"""The catalog of models and GPUs."""

from importlib.resources import files

import pytest

from llmsim.policies.core import specs
from llmsim.policies.core.gpu_spec import GpuSpec


def test_every_model_and_gpu_carries_the_name_of_its_file():
    assert [specs.model(name).name for name in specs.model_names()] == specs.model_names()
    assert [specs.gpu(name).name for name in specs.gpu_names()] == specs.gpu_names()


def test_the_catalog_holds_the_promised_names_in_order():
    assert specs.model_names() == [
        *("gemma-2-9b", "llama-3.1-70b", "llama-3.1-8b", "llama-3.2-1b", "mistral-7b"),
        *("qwen2.5-7b", "qwen3-0.6b", "qwen3-14b", "qwen3-30b-a3b", "qwen3-32b", "qwen3-8b", "small-cpu", "tiny"),
    ]
    assert specs.gpu_names() == [
        *("a100-40g", "a100-80g", "b200", "gh200-96g", "h100-pcie", "h100-sxm", "h200-sxm"),
        *("l4", "l40s", "mi300x", "rtx-4090", "rtx-pro-6000"),
    ]


def test_an_unknown_name_is_answered_with_the_choices():
    with pytest.raises(specs.UnknownName) as model_error:
        specs.model("lama")
    assert str(model_error.value) == f"model 'lama' is unknown; choose {', '.join(specs.model_names())}"
    with pytest.raises(specs.UnknownName) as gpu_error:
        specs.gpu("../gpus/h100-sxm")
    assert str(gpu_error.value).endswith(f"choose {', '.join(specs.gpu_names())}")


def test_a_data_sheet_is_read_in_si_units():
    assert specs.gpu("h200-sxm") == GpuSpec(
        name="h200-sxm",
        memory_bytes=round(139.8 * 2**30),
        bandwidth_bytes_per_s=4.8e12,
        bf16_flop_per_s=989.5e12,
        fp8_flop_per_s=1979e12,
        interconnect_bytes_per_s=900e9,
        host_link_bytes_per_s=128e9,
    )


def test_a_gpu_without_fp8_says_so():
    with pytest.raises(ValueError, match="a100-80g has no fp8 tensor cores"):
        specs.gpu("a100-80g").peak_flop_per_s("fp8")


def test_a_gpu_without_speed_is_refused():
    with pytest.raises(ValueError, match="above zero"):
        GpuSpec("broken", memory_bytes=1, bandwidth_bytes_per_s=float("nan"), bf16_flop_per_s=1.0)


def test_the_tiny_model_has_a_few_million_parameters():
    assert 2e6 < specs.model("tiny").num_parameters < 10e6


@pytest.mark.parametrize("name", specs.gpu_names())
def test_a_gpus_figures_are_of_the_right_order(name):
    gpu = specs.gpu(name)
    assert 20e9 < gpu.memory_bytes < 210e9
    assert 250e9 < gpu.bandwidth_bytes_per_s < 10e12
    assert 100e12 < gpu.bf16_flop_per_s < 3e15
    assert gpu.fp8_flop_per_s is None or gpu.fp8_flop_per_s / gpu.bf16_flop_per_s == pytest.approx(2, rel=0.02)
    assert 64e9 <= gpu.interconnect_bytes_per_s <= 1.8e12
    assert 64e9 <= gpu.host_link_bytes_per_s <= 900e9


@pytest.mark.parametrize("name", specs.gpu_names())
def test_a_gpus_file_says_where_its_figures_are_from(name):
    text = (files("llmsim.policies.core") / "catalog" / "gpus" / f"{name}.yaml").read_text()
    assert text.startswith("# Source: ")
    assert "memory_gib is " in text
