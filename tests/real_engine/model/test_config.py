from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from llmsim.policies.core import specs
from llmsim.real_engine.model.config import ModelConfig
from llmsim.real_engine.model.errors import ModelError, UnsupportedModel
from llmsim.real_engine.model.rope import LinearScaling, Llama3Scaling, Rope
from llmsim.tests.support.hf_configs import LLAMA_3_2_1B, PUBLISHED


def read(folder: Path, config: dict[str, Any], **changes: Any) -> ModelConfig:
    (folder / "config.json").write_text(json.dumps(config | changes))
    return ModelConfig.of_file(folder / "config.json")


def test_old_and_new_keys_give_the_same_positions(tmp_path: Path) -> None:
    scaling = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    old = {"rope_scaling": {"rope_type": "llama3", "factor": 32.0, **scaling}, "rope_theta": 500000.0}
    new = {"rope_parameters": old["rope_scaling"] | {"rope_theta": 500000.0}, "rope_scaling": None}
    expected = Rope(500000.0, Llama3Scaling(32.0, 1.0, 4.0, 8192))
    assert [read(tmp_path, LLAMA_3_2_1B, **keys).rope for keys in (old, new)] == [expected, expected]


def test_a_linear_scaling_may_have_the_oldest_key(tmp_path: Path) -> None:
    config = read(tmp_path, PUBLISHED["llama-3.1-8b"], rope_scaling={"type": "linear", "factor": 2})
    assert config.rope == Rope(10_000.0, LinearScaling(2.0))


def test_what_a_file_says_is_what_the_config_has(tmp_path: Path) -> None:
    fields = {"rms_norm_eps": 1e-5, "eos_token_id": [7, 9], "rope_theta": 1_000_000}
    config = read(tmp_path, PUBLISHED["qwen3-0.6b"], **fields)
    assert (config.spec.qk_norm, config.spec.tied_embeddings, config.spec.head_dim) == (True, True, 128)
    assert (config.rms_norm_eps, config.eos_token_ids, config.rope) == (1e-5, (7, 9), Rope(1e6))
    assert config.dtype is torch.bfloat16


def test_generation_config_names_the_last_tokens(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [3, 4]}))
    assert read(tmp_path, PUBLISHED["llama-3.1-8b"], eos_token_id=2).eos_token_ids == (3, 4)
    (tmp_path / "generation_config.json").write_text("{}")
    assert read(tmp_path, PUBLISHED["llama-3.1-8b"], eos_token_id=2).eos_token_ids == (2,)


def test_a_window_that_no_sequence_outgrows_is_none(tmp_path: Path) -> None:
    config = PUBLISHED["mistral-7b"]
    assert read(tmp_path, config, sliding_window=config["max_position_embeddings"]).rope == Rope()


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


@pytest.mark.parametrize(
    ("model", "changes", "says"),
    [
        ("gemma-2-9b", {}, "architectures: ['Gemma2ForCausalLM'] is not supported; choose one of LlamaForCausalLM,"),
        ("qwen3-30b-a3b", {}, "architectures: ['Qwen3MoeForCausalLM'] is not supported"),
        ("llama-3.1-8b", {"architectures": None}, "architectures: None is not supported"),
        ("llama-3.1-8b", {"hidden_act": "gelu"}, "hidden_act: 'gelu' is not supported; choose \"silu\""),
        ("llama-3.1-8b", {"mlp_bias": True}, "mlp_bias: True is not supported; choose false"),
        (
            "llama-3.1-8b",
            {"quantization_config": {"quant_method": "fp8"}},
            "quantization_config: {'quant_method': 'fp8'} is not supported; choose a checkpoint without",
        ),
        ("llama-3.1-8b", {"head_dim": 65}, "head_dim: 65 is odd"),
        ("llama-3.1-8b", {"num_key_value_heads": 5}, "num_key_value_heads: "),
        ("llama-3.1-8b", {"vocab_size": "many"}, "vocab_size: must be a whole number"),
        ("llama-3.1-8b", {"rms_norm_eps": "tiny"}, "rms_norm_eps: must be a number between 0 and 1, not 'tiny'"),
        ("llama-3.1-8b", {"eos_token_id": [128256]}, "eos_token_id: must be tokens below 128256, not 128256"),
        ("llama-3.1-8b", {"torch_dtype": "float8"}, "torch_dtype: 'float8' is unknown; choose bfloat16"),
        (
            "llama-3.1-8b",
            {"rope_scaling": {"rope_type": "yarn", "factor": 4}},
            "rope_scaling.rope_type: 'yarn' is not supported; choose default, linear, llama3",
        ),
        ("llama-3.1-8b", {"rope_parameters": {"rope_type": "linear"}}, "rope_parameters.factor: is missing"),
        ("llama-3.1-8b", {"rope_parameters": [1]}, "rope_parameters: must be an object, not [1]"),
        ("llama-3.1-8b", {"rope_theta": -1}, "rope_theta: must be a number above 0, not -1"),
        (
            "llama-3.1-8b",
            {"rope_scaling": LLAMA3 | {"low_freq_factor": 4.0}},
            "rope_scaling.low_freq_factor: 4.0 must be below high_freq_factor, 4.0",
        ),
        ("llama-3.1-8b", {"partial_rotary_factor": 0.5}, "partial_rotary_factor: is not supported; choose 1"),
        ("mistral-7b", {"sliding_window": 4096}, "sliding_window: 4096 is not supported; choose null"),
        (
            "qwen2.5-7b",
            {"use_sliding_window": True, "sliding_window": 64, "layer_types": ["sliding_attention"] * 28},
            "sliding_window: 64 is not supported; choose null",
        ),
    ],
)
def test_what_is_not_computed_is_refused_in_one_line(
    model: str, changes: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedModel) as refusal:
        read(tmp_path, PUBLISHED[model], **changes)
    message = str(refusal.value)
    assert message.startswith(f"{tmp_path / 'config.json'}: {says}")
    assert "\n" not in message


def test_a_mistral_file_without_a_window_has_the_one_that_transformers_takes(tmp_path: Path) -> None:
    config = {key: value for key, value in PUBLISHED["mistral-7b"].items() if key != "sliding_window"}
    with pytest.raises(UnsupportedModel, match="sliding_window: is missing, and 4096 would be taken"):
        read(tmp_path, config)


@pytest.mark.parametrize(
    ("text", "says"), [("{", "is not JSON: "), ("[]", "must hold a JSON object"), (None, "cannot be read: No such")]
)
def test_a_file_that_is_no_json_object_is_one_line(text: str | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ModelError) as refusal:
        ModelConfig.of_file(path)
    assert str(refusal.value).startswith(f"{path}: {says}")


@pytest.mark.parametrize("name", ["tiny", "llama-3.1-8b", "qwen2.5-7b", "qwen3-8b"])
def test_the_dense_models_of_the_catalog_are_supported(name: str) -> None:
    assert ModelConfig.of_spec(specs.model(name)).spec == specs.model(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gemma-2-9b", "gemma-2-9b: norms_per_layer: 4 is not supported by the real engine; choose a model with 2"),
        ("qwen3-30b-a3b", "qwen3-30b-a3b: num_experts: 128 is not supported by the real engine; choose a model with 0"),
    ],
)
def test_others_of_the_catalog_are_refused(name: str, says: str) -> None:
    with pytest.raises(UnsupportedModel) as refusal:
        ModelConfig.of_spec(specs.model(name))
    assert str(refusal.value) == says
