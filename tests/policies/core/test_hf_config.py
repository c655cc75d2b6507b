"""A config.json becomes the model that the catalog knows, or one line that names the field at fault."""

import dataclasses

import pytest

from llmsim.policies.core import specs
from llmsim.policies.core.hf_config import ConfigError, model_from_config
from llmsim.tests.support.hf_configs import LLAMA_3_2_1B, PUBLISHED


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_configs_give_the_models_of_the_catalog(name):
    assert model_from_config(PUBLISHED[name], name) == specs.model(name)


def changed(**fields):
    kept = {**LLAMA_3_2_1B, **fields}
    return {field: value for field, value in kept.items() if value != "left out"}


@pytest.mark.parametrize(
    "field",
    [
        *("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"),
        *("vocab_size", "max_position_embeddings"),
    ],
)
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("left out", "is missing"),
        (None, "is missing"),
        (0, "must be a whole number from 1 to a billion, not 0"),
        (16.0, "must be a whole number from 1 to a billion, not 16.0"),
        (True, "must be a whole number from 1 to a billion, not True"),
        ("16", "must be a whole number from 1 to a billion, not '16'"),
        (10**400, "must be a whole number from 1 to a billion, not 1000"),
    ],
)
def test_a_missing_or_malformed_size_is_named(field, value, said):
    with pytest.raises(ConfigError) as caught:
        model_from_config(changed(**{field: value}), "x")
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: {said}")
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize("name", ["MixtralForCausalLM", "DeepseekV3ForCausalLM", "MambaForCausalLM", "BertModel"])
def test_an_architecture_that_is_not_covered_is_refused_by_name(name):
    with pytest.raises(ConfigError, match=f"^architectures: '{name}' is not covered by the cost model; choose Llama"):
        model_from_config(changed(architectures=[name]), "x")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"architectures": "left out"}, "architectures: must be a list of one name, not None"),
        ({"architectures": []}, "architectures: must be a list of one name"),
        ({"architectures": [["LlamaForCausalLM"]]}, r"architectures: \['LlamaForCausalLM'\] is not covered"),
        ({"num_key_value_heads": 5}, "num_key_value_heads: x: 32 heads cannot share 5 KV heads evenly"),
        ({"head_dim": "left out", "hidden_size": 2050}, "head_dim: is missing, and hidden_size 2050 does not divide"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings: must be true or false, not 'yes'"),
        ({"mlp_bias": True}, "mlp_bias: true is not covered"),
        ({"torch_dtype": "int8"}, "torch_dtype: 'int8' is unknown; choose bfloat16, float16, float32"),
        ({"torch_dtype": "left out", "dtype": "int8"}, "dtype: 'int8' is unknown"),
        ({"quantization_config": {"quant_method": "bitsandbytes"}}, "quantization_config: quant_method must be one of"),
        (
            {"quantization_config": {"quant_method": ["fp8"]}},
            "quantization_config: quant_method must be one of fp8, awq",
        ),
        ({"quantization_config": "fp8"}, "quantization_config: quant_method must be one of fp8, awq, gptq to be"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 3}}, "quantization_config: bits must be 4 and group"),
    ],
)
def test_what_is_malformed_or_not_covered_is_named(fields, said):
    with pytest.raises(ConfigError, match=f"^{said}"):
        model_from_config(changed(**fields), "x")


def test_what_is_left_out_is_what_the_architecture_takes():
    whole = model_from_config(changed(head_dim="left out", torch_dtype="left out", mlp_bias="left out"), "x")
    assert whole == model_from_config(LLAMA_3_2_1B, "x")
    assert not model_from_config(changed(tie_word_embeddings="left out"), "x").tied_embeddings
    qwen = dict(PUBLISHED["qwen3-0.6b"])
    del qwen["head_dim"]
    assert model_from_config(qwen, "x").head_dim == 128


def test_an_attention_bias_counts_on_all_four_projections():
    plain, biased = (model_from_config(changed(attention_bias=flag), "x") for flag in (False, True))
    more = biased.num_parameters - plain.num_parameters
    assert more == 16 * (2048 + 2 * 512 + 2048)
    assert dataclasses.replace(biased, attention_bias=False, output_bias=False) == plain


def test_a_window_that_is_switched_off_is_none():
    assert PUBLISHED["qwen2.5-7b"]["sliding_window"] == 131072
    assert model_from_config(PUBLISHED["qwen2.5-7b"], "x").sliding_window is None
    assert model_from_config(changed(sliding_window=4096), "x").sliding_window is None  # Llama has none


def test_which_layers_slide_is_the_architectures_or_what_layer_types_says():
    def sliding(name, **fields):
        model = model_from_config({**PUBLISHED[name], **fields}, "x")
        return model.sliding_window, model.num_sliding_layers

    assert sliding("gemma-2-9b") == (4096, 21)
    assert sliding("gemma-2-9b", num_hidden_layers=41) == (4096, 21)
    assert sliding("gemma-2-9b", layer_types=["full_attention"] * 42) == (None, 0)
    assert sliding("mistral-7b", sliding_window=4096) == (4096, 32)
    types = ["full_attention"] * 20 + ["sliding_attention"] * 8
    assert sliding("qwen2.5-7b", use_sliding_window=True, layer_types=types) == (131072, 8)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "layer_types: is missing, and use_sliding_window is true"),
        ({"layer_types": ["full_attention"]}, "layer_types: must be a list of 28 of full_attention, sliding_attention"),
        ({"layer_types": ["linear_attention"] * 28}, "layer_types: must be a list of 28 of"),
        ({"layer_types": [{}] * 28}, "layer_types: must be a list of 28 of"),
        ({"layer_types": ["sliding_attention"] * 28, "sliding_window": 0}, "sliding_window: must be a whole number"),
    ],
)
def test_a_window_whose_layers_are_not_said_is_refused(fields, said):
    with pytest.raises(ConfigError, match=f"^{said}"):
        model_from_config({**PUBLISHED["qwen2.5-7b"], "use_sliding_window": True, **fields}, "x")


@pytest.mark.parametrize(
    ("quantization", "dtype"),
    [
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, "fp8"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, "int4"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, "int4"),
    ],
)
def test_a_quantized_checkpoint_has_its_own_weights(quantization, dtype):
    assert model_from_config(changed(quantization_config=quantization), "x").dtype == dtype


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"decoder_sparse_step": 2},
            "decoder_sparse_step: 2 is not covered by the cost model; every layer needs experts",
        ),
        ({"mlp_only_layers": [0]}, r"mlp_only_layers: \[0\] is not covered"),
        ({"num_experts_per_tok": 200}, "num_experts_per_tok: x: 200 experts a token cannot be of 128"),
        ({"moe_intermediate_size": None}, "moe_intermediate_size: is missing"),
    ],
)
def test_experts_that_are_not_in_every_layer_or_cannot_be_are_named(fields, said):
    with pytest.raises(ConfigError, match=f"^{said}"):
        model_from_config({**PUBLISHED["qwen3-30b-a3b"], **fields}, "x")
