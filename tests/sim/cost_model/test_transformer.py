"""The kernels of a step, counted against the model's own sizes."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmsim.policies.core import specs
from llmsim.policies.core.estimator import StepShape
from llmsim.sim.cost_model.transformer import Transformer, decode_load, prefill_load

LLAMA = specs.model("llama-3.1-8b")
ONE_GPU = Transformer(LLAMA, tensor_parallel=1, kv_dtype_bytes=2)
MIXED = StepShape([(512, 0), (16, 4000)], 10, 30_000, 9_000, 12, 0)


def total(kernels, field):
    return sum(kernel.num_launches * getattr(kernel, field) for kernel in kernels)


def named(kernels):
    return {kernel.name: kernel for kernel in kernels}


def test_a_token_multiplies_every_weight_but_the_embedding_once():
    weights = LLAMA.num_parameters - LLAMA.vocab_size * LLAMA.hidden_size
    norms = (2 * LLAMA.num_layers + 1) * LLAMA.hidden_size
    kernels = ONE_GPU.token_kernels(7) + ONE_GPU.row_kernels(7)
    assert total(kernels, "flops") == 7 * 2 * (weights - norms)


def test_a_step_reads_the_weights_once_whatever_its_tokens():
    linear_bytes = 2 * (LLAMA.num_parameters - 2 * LLAMA.vocab_size * LLAMA.hidden_size - 65 * 4096)
    one, two = (total(ONE_GPU.token_kernels(tokens), "num_bytes") for tokens in (1, 2))
    assert one - (two - one) == linear_bytes


def test_the_causal_mask_of_a_chunk_counts_each_pair_once():
    chunks = [(5, 3), (2, 0), (1, 9)]
    pairs = sum(kv + i for q, kv in chunks for i in range(1, q + 1))
    assert prefill_load(chunks) == (8 + 2 + 10, 8, pairs)


def test_a_prompt_in_chunks_has_the_pairs_of_the_whole():
    whole = prefill_load([(1000, 0)])
    parts = [prefill_load([(250, done)]) for done in (0, 250, 500, 750)]
    assert sum(part[2] for part in parts) == whole[2]


def test_drafts_see_the_mean_context():
    assert decode_load(context_tokens=3000, num_decodes=3, num_drafts=0) == (3000, 3, 3000)
    assert decode_load(context_tokens=3000, num_decodes=3, num_drafts=6) == (3000, 9, 9000)


def test_decode_attention_reads_the_kv_of_its_contexts():
    kernels = named(ONE_GPU.step_kernels(StepShape((), 10, 30_000, 9_000, 10, 0)))
    attention = kernels["decode_attention"]
    queries_and_outputs = 2 * 10 * 4096 * 2 * LLAMA.num_layers
    assert attention.num_launches * attention.num_bytes == 30_000 * 131072 + queries_and_outputs
    assert attention.flops == 4 * 4096 * 30_000


def test_a_step_writes_the_kv_of_its_tokens():
    write = named(ONE_GPU.step_kernels(MIXED))["kv_write"]
    read_and_written = 2 * (512 + 16 + 10) * 131072
    assert write.num_launches * write.num_bytes == read_and_written


def test_an_empty_step_has_no_kernels():
    assert ONE_GPU.step_kernels(StepShape()) == []


def test_drafts_pass_the_linear_layers_and_the_sampler():
    drafted = StepShape((), 4, 4000, 1000, 4, 8)
    kernels = named(ONE_GPU.step_kernels(drafted))
    assert kernels["qkv"] == named(ONE_GPU.token_kernels(12))["qkv"]
    assert kernels["lm_head"] == named(ONE_GPU.row_kernels(12))["lm_head"]


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_gpus_share_the_work_evenly(gpus):
    shared = named(Transformer(LLAMA, gpus, kv_dtype_bytes=2).step_kernels(MIXED))
    alone = named(ONE_GPU.step_kernels(MIXED))
    for name in ("qkv", "o", "gate_up", "down", "lm_head", "decode_attention", "prefill_attention"):
        assert gpus * shared[name].flops == alone[name].flops
    assert gpus * shared["kv_write"].num_bytes == alone["kv_write"].num_bytes


def test_only_several_gpus_reduce_twice_a_layer():
    assert "all_reduce" not in named(ONE_GPU.step_kernels(MIXED))
    reduce = named(Transformer(LLAMA, 2, kv_dtype_bytes=2).step_kernels(MIXED))["all_reduce"]
    assert (reduce.num_launches, reduce.link_bytes) == (64, 538 * 4096 * 2)


def test_fp8_weights_leave_lm_head_in_bf16():
    fp8 = dataclasses.replace(LLAMA, dtype="fp8")
    kernels = named(Transformer(fp8, 1, kv_dtype_bytes=2).step_kernels(MIXED))
    assert (kernels["qkv"].dtype, kernels["lm_head"].dtype) == ("fp8", "bf16")
    assert kernels["qkv"].num_bytes < named(ONE_GPU.step_kernels(MIXED))["qkv"].num_bytes


def test_qk_norm_is_a_kernel_of_its_own():
    assert "qk_norm" not in named(ONE_GPU.token_kernels(1))
    qwen = dataclasses.replace(LLAMA, qk_norm=True)
    assert named(Transformer(qwen, 1, kv_dtype_bytes=2).token_kernels(1))["qk_norm"].num_launches == 32


def test_a_window_cuts_what_each_query_sees():
    chunks = [(5, 3), (2, 0), (1, 9), (300, 2), (4, 600)]
    for window in (1, 4, 7, 250, 1000):
        pairs = sum(min(kv + i, window) for q, kv in chunks for i in range(1, q + 1))
        keys = sum(
            len({key for i in range(1, q + 1) for key in range(max(kv + i - window, 0), kv + i)}) for q, kv in chunks
        )
        assert prefill_load(chunks, window) == (keys, 312, pairs)
    assert prefill_load(chunks, 1000) == prefill_load(chunks)


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=50), st.integers(1, 5000))
def test_decodes_under_a_window_are_exact_on_one_side_of_it_and_never_too_little(contexts, window):
    priced, _, _ = decode_load(sum(contexts), len(contexts), 0, window)
    exact = sum(min(context, window) for context in contexts)
    assert priced >= exact
    if max(contexts) <= window or min(contexts) >= window:
        assert priced == exact


def test_every_other_layer_of_gemma_slides():
    gemma = Transformer(specs.model("gemma-2-9b"), 1, kv_dtype_bytes=2)
    kernels = named(gemma.step_kernels(StepShape((), 10, 80_000, 8_000, 10, 0)))
    full, sliding = kernels["decode_attention"], kernels["decode_sliding_attention"]
    assert (full.num_launches, sliding.num_launches) == (21, 21)
    assert (full.flops, sliding.flops) == (4 * 4096 * 80_000, 4 * 4096 * 40_960)
    assert kernels["norm"].num_launches == 4 * 42


def test_experts_are_read_as_far_as_tokens_need_them_and_multiplied_by_those_picked():
    model = specs.model("qwen3-30b-a3b")
    moe = Transformer(model, tensor_parallel=1, kv_dtype_bytes=2)
    one, many = (named(moe.token_kernels(tokens)) for tokens in (1, 4096))
    expert = 3 * 2048 * 768
    assert (one["moe"].flops, many["moe"].flops) == (2 * 8 * expert, 2 * 8 * expert * 4096)
    assert one["moe"].num_bytes == pytest.approx(2 * 8 * expert, rel=0.01)
    assert named(moe.token_kernels(2))["moe"].num_bytes == pytest.approx(2 * 15.5 * expert, rel=0.01)
    assert not {"gate_up", "down", "act"} & set(one)
    assert one["router"].flops == 2 * 2048 * 128
    weights = model.num_parameters - (2 * 48 + 1 + 2 * 151936) * 2048 - 48 * 256
    one_step, two_steps = (total(moe.token_kernels(tokens), "num_bytes") for tokens in (10_000, 20_000))
    assert 2 * one_step - two_steps == pytest.approx(2 * weights, rel=1e-3)
