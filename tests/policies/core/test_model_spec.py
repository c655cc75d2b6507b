"""Parameters and bytes of known models, and how they divide over GPUs."""

import dataclasses

import pytest

from llmsim.policies.core import specs
from llmsim.policies.core.model_spec import ModelSpec

LLAMA = specs.model("llama-3.1-8b")
QWEN25_7B = ModelSpec(
    name="qwen2.5-7b",
    num_layers=28,
    hidden_size=3584,
    intermediate_size=18944,
    num_heads=28,
    num_kv_heads=4,
    head_dim=128,
    vocab_size=152064,
    max_position_embeddings=32768,
    attention_bias=True,
)
QWEN3_06B = ModelSpec(
    name="qwen3-0.6b",
    num_layers=28,
    hidden_size=1024,
    intermediate_size=3072,
    num_heads=16,
    num_kv_heads=8,
    head_dim=128,
    vocab_size=151936,
    max_position_embeddings=40960,
    tied_embeddings=True,
    qk_norm=True,
)


@pytest.mark.parametrize(
    ("model", "published"),
    [(LLAMA, 8_030_261_248), (QWEN25_7B, 7_615_616_512), (QWEN3_06B, 596_049_920)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_parameters_are_those_of_the_published_checkpoint(model, published):
    assert model.num_parameters == published
    assert model.weight_bytes() == 2 * published


def test_kv_of_a_llama_token_is_128_kib_in_bf16():
    assert LLAMA.kv_bytes_per_token() == 131072
    assert LLAMA.kv_bytes_per_token(kv_dtype_bytes=1) == 65536


def test_kv_divides_over_gpus_until_each_holds_one_head():
    sizes = [LLAMA.kv_bytes_per_token(gpus) for gpus in (1, 2, 4, 8, 16, 32)]
    assert sizes == [131072, 65536, 32768, 16384, 16384, 16384]


def test_tensor_parallel_copies_only_the_norms():
    norms_bytes = (2 * LLAMA.num_layers + 1) * LLAMA.hidden_size * 2
    for gpus in (2, 4, 8):
        assert gpus * LLAMA.weight_bytes(gpus) == LLAMA.weight_bytes() + (gpus - 1) * norms_bytes


def test_more_gpus_than_kv_heads_copy_the_kv_projections():
    one_kv_head = 2 * LLAMA.hidden_size * LLAMA.head_dim * 2 * LLAMA.num_layers
    norms_bytes = (2 * LLAMA.num_layers + 1) * LLAMA.hidden_size * 2
    extra = 8 * one_kv_head + 15 * norms_bytes
    assert 16 * LLAMA.weight_bytes(16) == LLAMA.weight_bytes() + extra


def test_fp8_halves_the_linear_layers_and_nothing_else():
    fp8 = dataclasses.replace(LLAMA, dtype="fp8")
    linear = LLAMA.num_layers * 4096 * (4096 + 2 * 1024 + 4096 + 3 * 14336)
    assert LLAMA.weight_bytes() - fp8.weight_bytes() == linear


@pytest.mark.parametrize("gpus", [0, 3, 64])
def test_a_tensor_parallel_that_does_not_divide_is_refused(gpus):
    with pytest.raises(ValueError, match=f"tensor_parallel.* {gpus}"):
        LLAMA.check_tensor_parallel(gpus)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_layers": 0}, "num_layers is 0"),
        ({"vocab_size": 0}, "vocab_size"),
        ({"num_kv_heads": 5}, "cannot share 5 KV heads"),
        ({"dtype": "int4"}, "'int4' is unknown; choose bf16, fp8"),
    ],
)
def test_impossible_shapes_are_refused(change, said):
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(LLAMA, **change)
