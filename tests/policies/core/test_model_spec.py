"""Parameters and bytes of known models, and how they divide over GPUs."""

import dataclasses

import pytest

from llmsim.policies.core import specs
from llmsim.policies.core.model_spec import stored_bytes

LLAMA = specs.model("llama-3.1-8b")
PUBLISHED = {
    "gemma-2-9b": 9_241_705_984,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.2-1b": 1_235_814_400,
    "mistral-7b": 7_248_023_552,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-0.6b": 596_049_920,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-32b": 32_762_123_264,
}
"""Parameters that Hugging Face counts in the checkpoints; tied embeddings once."""


@pytest.mark.parametrize("name", [name for name in specs.model_names() if name != "tiny"])
def test_parameters_are_those_of_the_published_checkpoint(name):
    model = specs.model(name)
    assert model.num_parameters == PUBLISHED[name]
    assert model.weight_bytes() == 2 * PUBLISHED[name]


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


def test_few_tokens_need_experts_of_their_own_and_many_share_all():
    moe = specs.model("qwen3-30b-a3b")
    assert moe.active_experts(1) == pytest.approx(8)
    assert moe.active_experts(2) == pytest.approx(15.5)
    assert moe.active_experts(1000) == pytest.approx(128)


@pytest.mark.parametrize(("experts", "per_token"), [(0, 2), (8, 0), (8, 9), (8, -1)])
def test_experts_that_cannot_be_picked_are_refused(experts, per_token):
    with pytest.raises(ValueError, match="experts a token cannot be of"):
        dataclasses.replace(LLAMA, num_experts=experts, experts_per_token=per_token)


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
        ({"num_sliding_layers": 4}, "sliding_window is None; sliding layers need at least 1"),
        ({"num_sliding_layers": 33, "sliding_window": 4096}, "num_sliding_layers at most num_layers"),
        ({"dtype": "int3"}, "'int3' is unknown; choose fp32, bf16, fp8, int4"),
    ],
)
def test_impossible_shapes_are_refused(change, said):
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(LLAMA, **change)


@pytest.mark.parametrize(("name", "gigabytes"), [("llama-3.1-8b", 5.73), ("qwen2.5-7b", 5.57)])
def test_int4_weights_are_as_large_as_the_published_awq_checkpoints(name, gigabytes):
    int4 = dataclasses.replace(specs.model(name), dtype="int4")
    assert int4.weight_bytes() / 1e9 == pytest.approx(gigabytes, abs=0.01)


def test_weights_are_stored_in_their_bits_and_int4_in_groups():
    assert [stored_bytes(1280, dtype) for dtype in ("bf16", "fp8", "int4")] == [2560, 1280, 640 + 25]
    assert stored_bytes(129, "int4") == 70  # 64.5 bytes and two groups of 2.5
