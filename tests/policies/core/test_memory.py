"""The memory budget against the KV pools that vLLM printed, and its refusals."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmsim.policies.core import specs
from llmsim.policies.core.gpu_spec import GpuSpec
from llmsim.policies.core.memory import (
    GIB,
    DoesNotFit,
    activation_bytes,
    buffer_bytes,
    concurrency_note,
    memory_budget,
)

LLAMA = specs.model("llama-3.1-8b")
QWEN25_7B = specs.model("qwen2.5-7b")
A100_40G, RTX4090 = specs.gpu("a100-40g"), specs.gpu("rtx-4090")
LIMITS = {
    "tensor_parallel": 1,
    "gpu_memory_utilization": 0.9,
    "max_num_batched_tokens": 2048,
    "max_num_seqs": 256,
    "block_size": 16,
}


def gpu_that_leaves(model, available_bytes):
    """A GPU with exactly that many bytes left for KV when all of it may be used."""
    used = model.weight_bytes() + activation_bytes(model, 1, 2048, 256) + buffer_bytes(model)
    return GpuSpec("exact", used + available_bytes, bandwidth_bytes_per_s=1e12, bf16_flop_per_s=1e14)


@pytest.mark.parametrize(
    ("model", "available_gib", "tokens", "max_model_len", "concurrency"),
    [
        (LLAMA, 19.28, 157_936, 131_072, 1.20),
        (LLAMA, 5.055, 41_408, 32_768, 1.26),
        (QWEN25_7B, 16.0, 299_584, 8_192, 36.57),
    ],
)
def test_given_bytes_hold_the_tokens_that_vllm_printed(model, available_gib, tokens, max_model_len, concurrency):
    gpu = gpu_that_leaves(model, int(available_gib * GIB))
    budget = memory_budget(model, gpu, **{**LIMITS, "gpu_memory_utilization": 1.0})
    assert budget.num_blocks * budget.block_size == tokens
    assert round(budget.max_concurrency(max_model_len), 2) == concurrency


@pytest.mark.parametrize(("gpu", "available_gib"), [(A100_40G, 19.28), (RTX4090, 5.055)], ids=["a100-40g", "rtx-4090"])
def test_derived_pool_is_within_three_per_cent_of_vllms(gpu, available_gib):
    budget = memory_budget(LLAMA, gpu, **LIMITS)
    assert budget.kv_bytes / GIB == pytest.approx(available_gib, rel=0.03)


def test_parts_never_exceed_the_budget_and_waste_less_than_a_block():
    budget = memory_budget(LLAMA, specs.gpu("h100-sxm"), **LIMITS)
    used = budget.weights_bytes + budget.kv_bytes + budget.activations_bytes + budget.buffers_bytes
    assert 0 <= budget.budget_bytes - used < budget.block_size * budget.kv_bytes_per_token
    assert budget.budget_bytes == int(0.9 * budget.memory_bytes)
    assert budget.kv_bytes == budget.num_blocks * budget.block_size * 131072


def test_pinned_blocks_are_taken_as_they_are():
    budget = memory_budget(LLAMA, RTX4090, **LIMITS, num_blocks=2588)
    assert (budget.num_blocks, budget.kv_bytes) == (2588, 2588 * 16 * 131072)


def test_pinned_blocks_override_the_utilisation_but_not_the_memory():
    whole = memory_budget(LLAMA, RTX4090, **{**LIMITS, "gpu_memory_utilization": 1.0}).num_blocks
    assert memory_budget(LLAMA, RTX4090, **LIMITS).num_blocks < whole
    assert memory_budget(LLAMA, RTX4090, **LIMITS, num_blocks=whole).num_blocks == whole
    with pytest.raises(DoesNotFit, match=rf"\({whole + 1:,} blocks\) exceed 23.52 GiB$"):
        memory_budget(LLAMA, RTX4090, **LIMITS, num_blocks=whole + 1)


def test_pinning_the_null_block_alone_is_refused():
    with pytest.raises(ValueError, match="num_blocks is 1; it must be at least 2"):
        memory_budget(LLAMA, RTX4090, **LIMITS, num_blocks=1)


def test_a_model_that_leaves_no_usable_block_does_not_fit():
    block_bytes = 16 * 131072
    limits = {**LIMITS, "gpu_memory_utilization": 1.0}
    assert memory_budget(LLAMA, gpu_that_leaves(LLAMA, 2 * block_bytes), **limits).num_blocks == 2
    with pytest.raises(DoesNotFit) as refusal:
        memory_budget(LLAMA, gpu_that_leaves(LLAMA, 2 * block_bytes - 1), **limits)
    assert "\n" not in str(refusal.value)
    assert "llama-3.1-8b does not fit exact with tensor_parallel 1: weights 14.96 GiB" in str(refusal.value)


def test_tensor_parallel_makes_room():
    one = memory_budget(LLAMA, RTX4090, **LIMITS)
    two = memory_budget(LLAMA, RTX4090, **{**LIMITS, "tensor_parallel": 2})
    assert two.num_blocks > 4 * one.num_blocks  # half the bytes a token, and half the weights


def test_fp8_kv_doubles_the_blocks():
    bf16 = memory_budget(LLAMA, A100_40G, **LIMITS)
    fp8 = memory_budget(LLAMA, A100_40G, **LIMITS, kv_dtype_bytes=1)
    assert fp8.num_blocks // 2 == bf16.num_blocks


def test_in_fp32_weights_and_kv_take_twice_the_bytes():
    wide = dataclasses.replace(LLAMA, dtype="fp32")
    assert wide.weight_bytes() == 2 * LLAMA.weight_bytes()
    assert wide.kv_bytes_per_token() == 2 * LLAMA.kv_bytes_per_token()
    halves, whole = (memory_budget(model, A100_40G, **LIMITS) for model in (LLAMA, wide))
    assert whole.kv_bytes_per_token == 2 * halves.kv_bytes_per_token
    with pytest.raises(ValueError, match="a100-40g: the data sheet does not say how fast fp32 is"):
        A100_40G.peak_flop_per_s("fp32")


def test_a_refusal_holds_the_budget_that_was_needed():
    with pytest.raises(DoesNotFit) as refusal:
        memory_budget(LLAMA, gpu_that_leaves(LLAMA, 0), **{**LIMITS, "gpu_memory_utilization": 1.0})
    budget = refusal.value.budget
    assert (budget.num_blocks, budget.weights_bytes) == (2, LLAMA.weight_bytes())


def test_sampling_rows_decide_the_activations_until_the_batch_is_large():
    rows = 256 * 128_256 * 27
    assert activation_bytes(LLAMA, 1, 2048, 256) == 2048 * 4096 * 2 + rows
    assert activation_bytes(LLAMA, 1, 16384, 256) == 16384 * (2 * 4096 + 3 * 14336) * 2
    assert activation_bytes(LLAMA, 1, 64, 256) == 64 * 4096 * 2 + rows // 4


@given(
    tokens=st.integers(1, 20_000),
    seqs=st.integers(1, 1024),
    more_tokens=st.integers(0, 5_000),
    more_seqs=st.integers(0, 500),
)
def test_higher_limits_never_leave_more_blocks(tokens, seqs, more_tokens, more_seqs):
    def blocks(num_tokens, num_seqs):
        limits = {**LIMITS, "max_num_batched_tokens": num_tokens, "max_num_seqs": num_seqs}
        return memory_budget(LLAMA, specs.gpu("h200-sxm"), **limits).num_blocks

    assert blocks(tokens + more_tokens, seqs + more_seqs) <= blocks(tokens, seqs)


def test_a_note_says_when_fewer_requests_fit_than_wanted():
    budget = memory_budget(LLAMA, RTX4090, **LIMITS, num_blocks=1 + 3 * 63)
    assert concurrency_note(budget, wanted_concurrency=3, tokens_per_request=1000) is None
    assert concurrency_note(budget, wanted_concurrency=4, tokens_per_request=1000) == (
        "the weights fit, but only 3 of 4 concurrent requests of 1,000 tokens do"
    )
    short = dataclasses.replace(budget, num_blocks=3 * 63)  # the null block serves no one
    assert "only 2 of 3" in str(concurrency_note(short, 3, 1000))


@pytest.mark.parametrize("utilization", [0.0, 1.01, float("nan")])
def test_a_utilisation_out_of_range_is_refused(utilization):
    with pytest.raises(ValueError, match="gpu_memory_utilization is"):
        memory_budget(LLAMA, RTX4090, **{**LIMITS, "gpu_memory_utilization": utilization})


@pytest.mark.parametrize("key", ["max_num_batched_tokens", "max_num_seqs", "block_size"])
def test_a_limit_of_zero_is_refused(key):
    with pytest.raises(ValueError, match=key):
        memory_budget(LLAMA, RTX4090, **{**LIMITS, key: 0})
