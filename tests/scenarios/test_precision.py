"""What `engine.dtype` and `engine.quantization` make of the weights, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmsim.policies.core import specs
from llmsim.policies.core.estimator import StepShape
from llmsim.scenarios.assembly import Assembly, assemble
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario
from llmsim.tests.support.hf_configs import LLAMA_3_2_1B
from llmsim.tests.support.scenario_files import write_scenario

DECODE = StepShape((), 8, 8000, 1000, 8, 0)


def assembled(folder: Path, *overrides: str) -> Assembly:
    return assemble(load_scenario(write_scenario(folder), ["model=llama-3.1-8b", *overrides]))


@pytest.mark.parametrize(("quantization", "dtype"), [("fp8", "fp8"), ("awq", "int4"), ("gptq", "int4")])
def test_quantized_weights_leave_more_room_and_take_less_time(tmp_path: Path, quantization: str, dtype: str) -> None:
    plain, quantized = assembled(tmp_path), assembled(tmp_path, f"engine.quantization={quantization}")
    assert quantized.model.dtype == dtype
    saved = plain.budget.weights_bytes - quantized.budget.weights_bytes
    assert saved > 0.4 * plain.budget.weights_bytes
    assert quantized.budget.kv_bytes - plain.budget.kv_bytes == pytest.approx(saved, abs=2**22)
    ours, theirs = (a.cost_model().step_cost(DECODE).device_ns for a in (quantized, plain))
    assert ours < 0.65 * theirs
    assert quantized.resolved()["engine"]["quantization"] == quantization


def test_either_dtype_of_16_bits_is_the_same(tmp_path: Path) -> None:
    automatic = assembled(tmp_path)
    for dtype in ("bfloat16", "float16"):
        chosen = assembled(tmp_path, f"engine.dtype={dtype}")
        assert (chosen.model, chosen.budget) == (automatic.model, automatic.budget)
        assert chosen.resolved()["engine"]["dtype"] == dtype


def test_float32_doubles_weights_and_cache_and_has_its_own_peak(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "{name: mine, memory_gib: 80, bandwidth_gb_s: 900, bf16_tflop_s: 200, fp32_tflop_s: 20}"
    )
    sheet = f"hardware.gpu={tmp_path / 'mine.yaml'}"
    narrow, wide = assembled(tmp_path, sheet), assembled(tmp_path, sheet, "engine.dtype=float32")
    assert wide.model.dtype == "fp32"
    assert wide.budget.weights_bytes == 2 * narrow.budget.weights_bytes
    assert wide.budget.kv_bytes_per_token == 2 * narrow.budget.kv_bytes_per_token
    prefill = StepShape([(4096, 0)], 0, 0, 0, 1, 0)
    ours, theirs = (a.cost_model().step_cost(prefill) for a in (wide, narrow))
    assert ours.compute_ns == pytest.approx(10 * theirs.compute_ns)
    assert ours.memory_ns == pytest.approx(2 * theirs.memory_ns, rel=1e-4)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("engine.quantization=int4", "engine.quantization: 'int4' is unknown; "),
        ("engine.dtype=float64", "engine.dtype: 'float64' is unknown; "),
        ("engine.dtype=float32", "engine.dtype: h100-sxm: the data sheet does not say how fast fp32 is"),
        ("engine={quantization: fp8, dtype: float32}", "engine.dtype: 'float32' does not go with the fp8 weights of"),
    ],
)
def test_an_unknown_precision_is_one_line(tmp_path: Path, override: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        assembled(tmp_path, override)


@pytest.mark.parametrize("gpu", [name for name in specs.gpu_names() if specs.gpu(name).fp8_flop_per_s is None])
def test_fp8_weights_need_fp8_tensor_cores(tmp_path: Path, gpu: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        assembled(tmp_path, f"hardware.gpu={gpu}", "engine.quantization=fp8")
    says = f"engine.quantization: {gpu} has no fp8 tensor cores; choose weights of another precision"
    assert str(caught.value) == f"{tmp_path}/s.yaml: {says}"
    assert assembled(tmp_path, f"hardware.gpu={gpu}", "engine.quantization=awq").model.dtype == "int4"


def test_a_quantized_file_keeps_its_own_precision(tmp_path: Path) -> None:
    config = {**LLAMA_3_2_1B, "quantization_config": {"quant_method": "fp8"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    for agreeing in ((), ("engine.quantization=fp8",)):
        assert assembled(tmp_path, "model=config.json", *agreeing).model.dtype == "fp8"
    with pytest.raises(ScenarioError) as caught:
        assembled(tmp_path, "model=config.json", "engine.quantization=awq")
    says = "engine.quantization: 'awq' differs from the fp8 weights of config.json"
    assert str(caught.value) == f"{tmp_path}/s.yaml: {says}"
    with pytest.raises(ScenarioError, match=r"s\.yaml: model: a100-80g has no fp8 tensor cores"):
        assembled(tmp_path, "model=config.json", "hardware.gpu=a100-80g")
