"""Steps priced by a measured profile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmsim.policies.core import specs
from llmsim.policies.core.estimator import StepCost, StepShape
from llmsim.sim.cost_model.profile_header import AttentionLaunches, Host, Residuals, SharedContexts, UnequalContexts
from llmsim.sim.cost_model.profiled import ProfiledCostModel
from llmsim.sim.cost_model.timings import ProfileError
from llmsim.tests.support.profiles import TINY, TOKEN_KERNELS, fitted, us

PROFILE = fitted()
COST_MODEL = ProfiledCostModel(PROFILE, TINY)
SKEW = UnequalContexts(applied=True, decode_alpha=0.3, mixed_alpha=0.1)
SHARED = SharedContexts(alpha=0.4)


def with_header(**update: Any) -> ProfiledCostModel:
    """The same timings under another header."""
    return ProfiledCostModel(replace(PROFILE, header=PROFILE.header.model_copy(update=update)), TINY)


SKEWED = with_header(unequal_contexts=SKEW)
SHARING = with_header(unequal_contexts=SKEW, shared_contexts=SHARED)


@st.composite
def shapes(draw):
    """Steps of any mixture."""
    chunks = draw(st.lists(st.tuples(st.integers(1, 1500), st.integers(0, 3000)), max_size=3))
    decodes, mean = draw(st.integers(0, 100)), draw(st.integers(1, 12_000))
    longest = mean * 2 if decodes > 1 else mean
    return StepShape(chunks, decodes, decodes * mean, longest if decodes else 0, decodes + len(chunks), 0)


def layers_us(*parts: tuple[str, int]) -> float:
    """So many launches of each kernel in a layer, `TINY.num_layers` of them."""
    return TINY.num_layers * sum(us(kernel, (size,)) for kernel, size in parts)


def test_a_step_at_measured_shapes_is_the_sum_of_its_measured_kernels():
    in_layers = [kernel for kernel in TOKEN_KERNELS if kernel not in ("embedding", "final_norm")]
    expected = layers_us(*((kernel, 64) for kernel in [*in_layers, "norm"]))
    expected += sum(us(kernel, (64,)) for kernel in ("embedding", "final_norm", "lm_head", "sampler"))
    expected += TINY.num_layers * us("attention", (0, 0, 64, 1024, 1024))
    cost = COST_MODEL.step_cost(StepShape((), 64, 64 * 1024, 1024, 64, 0))
    assert cost.device_ns == round(expected * 1e3)
    assert (cost.share.measured_ns, cost.share.extrapolated_ns, cost.share.data_sheet_ns) == (cost.device_ns, 0, 0)
    assert not cost.extrapolated


@given(shapes())
def test_no_step_beats_the_floor(shape):
    cost = COST_MODEL.step_cost(shape)
    assert cost.device_ns >= max(cost.compute_ns, cost.memory_ns)
    assert all(type(value) is int for value in cost[:4])
    assert COST_MODEL.step_cost(shape) == cost


def test_a_profile_that_is_too_fast_is_held_to_the_floor():
    hasty = replace(PROFILE, timings=[timing._replace(time_us=1e-6) for timing in PROFILE.timings])
    cost = ProfiledCostModel(hasty, TINY).step_cost(StepShape((), 64, 64 * 1024, 1024, 64, 0))
    assert cost.device_ns == max(cost.compute_ns, cost.memory_ns) > 0


@pytest.mark.parametrize("cost_model", [COST_MODEL, SKEWED, SHARING], ids=["equal contexts", "corrected", "shared"])
@given(st.integers(1, 100), st.integers(1, 20_000), st.integers(0, 60), st.floats(0, 1))
def test_a_stretch_equals_its_steps_one_by_one(cost_model, num_decodes, mean_context, num_steps, part):
    context, longest = num_decodes * mean_context, mean_context if num_decodes == 1 else 2 * mean_context
    shared = round(part * (context - longest))
    *columns, share = cost_model.decode_stretch(num_decodes, context, longest, num_steps, shared)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    shares = list(zip(*(column.tolist() for column in share), strict=True))
    for i, row in enumerate(rows):
        stepped = cost_model.step_cost(
            StepShape((), num_decodes, context + i * num_decodes, longest + i, num_decodes, shared_tokens=shared)
        )
        assert StepCost(*row) == (*stepped[:5], None)
        assert shares[i] == stepped.share


def test_steps_are_padded_to_the_next_cuda_graph():
    padded = ProfiledCostModel(PROFILE, TINY, graph_sizes=(1, 2, 4, 8, 16, 64))
    few, many = StepShape((), 17, 17 * 100, 100, 17, 0), StepShape((), 65, 65 * 100, 100, 65, 0)
    assert padded.step_cost(few).device_ns > COST_MODEL.step_cost(few).device_ns
    assert padded.step_cost(many).device_ns == COST_MODEL.step_cost(many).device_ns
    assert COST_MODEL.kernel_us("qkv", 64)[0] == us("qkv", (64,))


def test_graphs_of_decodes_alone_pad_their_rows_too_and_no_other_step():
    graphs = ProfiledCostModel(PROFILE, TINY, graph_sizes=(1, 64), pads_decodes_alone=True)
    rows = sum(us(kernel, (64,)) - us(kernel, (32,)) for kernel in ("lm_head", "sampler"))
    tokens = ProfiledCostModel(PROFILE, TINY, graph_sizes=(1, 64))
    decodes = StepShape((), 32, 32 * 128, 128, 32, 0)
    both = graphs.step_cost(decodes).device_ns - tokens.step_cost(decodes).device_ns
    assert both == pytest.approx(rows * 1e3, abs=2)
    mixed = StepShape([(16, 0)], 16, 16 * 128, 128, 17, 0)
    assert graphs.step_cost(mixed) == COST_MODEL.step_cost(mixed)


def test_attention_that_is_launched_apart_adds_chunk_by_chunk_and_extrapolates_nothing():
    apart = ProfiledCostModel(fitted(attention=AttentionLaunches(launches="separate")), TINY)
    cost = apart.step_cost(StepShape([(64, 1024), (64, 0)], 16, 16 * 128, 128, 18, 0))
    assert not cost.extrapolated
    rest = apart.step_cost(StepShape([(144, 0)], 0, 0, 0, 18, 0)).device_ns
    alone = TINY.num_layers * apart.attention_us(144, 0, 0, 0)[0]
    parts = ((64, 1024, 0, 0), (64, 0, 0, 0), (0, 0, 16, 128))
    attention = TINY.num_layers * sum(apart.attention_us(*part)[0] for part in parts)
    assert cost.device_ns == pytest.approx(rest + (attention - alone) * 1e3, abs=2)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("decode_s", StepShape((), 8, 800, 100, 8, 0)),
        ("prefill_s", StepShape([(64, 0)], 0, 0, 0, 1, 0)),
        ("mixed_s", StepShape([(64, 0)], 8, 800, 100, 9, 0)),
    ],
)
def test_a_residual_is_added_to_steps_of_its_kind(kind, shape):
    slower = ProfiledCostModel(fitted(residual=Residuals(**{kind: 0.002})), TINY)
    others = {"decode_s", "prefill_s", "mixed_s"} - {kind}
    same = ProfiledCostModel(fitted(residual=Residuals(**dict.fromkeys(others, 0.002))), TINY)
    assert slower.step_cost(shape).device_ns == COST_MODEL.step_cost(shape).device_ns + 2_000_000
    assert same.step_cost(shape).device_ns == COST_MODEL.step_cost(shape).device_ns


@pytest.mark.parametrize("shape", [StepShape((), 8, 800, 100, 8), StepShape([(64, 0)], 0, 0, 0, 1)])
def test_a_share_lengthens_what_the_kernels_take(shape):
    slower = ProfiledCostModel(fitted(residual=Residuals(decode_share=0.25, prefill_share=0.25)), TINY)
    kernels = COST_MODEL.step_cost(shape)
    assert slower.step_cost(shape).device_ns == pytest.approx(1.25 * kernels.device_ns, abs=1)
    assert slower.step_cost(shape).share == pytest.approx([1.25 * part for part in kernels.share], abs=1)


@pytest.mark.parametrize("context", [64 * 1024, 64 * 1000, 64 * 9000])
def test_with_a_residual_a_stretch_is_its_steps_to_the_nanosecond(context):
    model = ProfiledCostModel(fitted(residual=Residuals(decode_s=1.2345e-4, decode_share=0.0321)), TINY)
    stretch = model.decode_stretch(64, context, context // 64, 40)
    steps = [StepShape((), 64, context + 64 * i, context // 64 + i, 64) for i in range(40)]
    assert stretch.device_ns.tolist() == [model.step_cost(step).device_ns for step in steps]


def test_rows_without_a_token_cost_nothing_where_the_engine_leaves_them_out():
    leaves_out = ProfiledCostModel(fitted(logits="sampled"), TINY)
    both = StepShape([(64, 0), (32, 0)], 4, 400, 100, 6, 0, 1)
    assert leaves_out.step_cost(both) == COST_MODEL.step_cost(both._replace(num_samples=5, num_unfinished=0))
    assert COST_MODEL.step_cost(both) == COST_MODEL.step_cost(both._replace(num_unfinished=0))
    alone = StepShape([(64, 0)], 0, 0, 0, 1, 0, 1)
    rows_ns = 1e3 * sum(us(kernel, (1,)) for kernel in ("lm_head", "sampler"))
    saved = COST_MODEL.step_cost(alone).device_ns - leaves_out.step_cost(alone).device_ns
    assert saved == pytest.approx(rows_ns, abs=2)


def test_the_host_is_the_profiles():
    cost_model = ProfiledCostModel(fitted(host=Host(step_s=0.003, request_s=1e-5)), TINY)
    assert cost_model.step_cost(StepShape((), 8, 800, 100, 8, 0)).host_ns == 3_080_000
    assert cost_model.step_cost(StepShape()).host_ns == 3_000_000
    assert cost_model.step_cost(StepShape()).device_ns == 0


def test_leaving_the_grid_is_told():
    assert not COST_MODEL.step_cost(StepShape((), 64, 64 * 8192, 8192, 64, 0)).extrapolated
    beyond = COST_MODEL.step_cost(StepShape((), 64, 64 * 9000, 9000, 64, 0))
    assert beyond.extrapolated
    assert 0 < beyond.share.extrapolated_ns < beyond.device_ns


def test_what_was_not_measured_is_taken_from_the_data_sheet():
    bare = replace(PROFILE, timings=[timing for timing in PROFILE.timings if timing.kernel != "norm"])
    shape = StepShape((), 64, 64 * 1024, 1024, 64, 0)
    cost = ProfiledCostModel(bare, TINY).step_cost(shape)
    assert 0 < cost.share.data_sheet_ns < cost.device_ns < COST_MODEL.step_cost(shape).device_ns


def test_unequal_contexts_cost_more_where_the_correction_is_applied():
    made = fitted()
    shape = StepShape((), 16, 16 * 128, 1024, 16, 0)
    header = made.header.model_copy(update={"unequal_contexts": UnequalContexts(applied=True, decode_alpha=0.5)})
    corrected = ProfiledCostModel(replace(made, header=header), TINY).step_cost(shape)
    mean, most = (us("attention", (0, 0, 16, context, context)) for context in (128, 1024))
    added_ns = TINY.num_layers * 0.5 * (most - mean) * 1e3
    assert corrected.device_ns == pytest.approx(COST_MODEL.step_cost(shape).device_ns + added_ns, abs=2)


def test_beside_a_prefill_the_longest_context_ends_so_much_later():
    header = PROFILE.header.model_copy(update={"unequal_contexts": UnequalContexts(mixed_alpha=0.5)})
    corrected = ProfiledCostModel(replace(PROFILE, header=header), TINY)
    for num_decodes, longer in ((16, True), (1, False)):
        shape = StepShape(((64, 64),), num_decodes, num_decodes * 128, 1024, num_decodes + 1, 0)
        mean, most = (us("attention", (64, 64, 1, context, context)) for context in (128, 1024))
        added_ns = TINY.num_layers * 0.5 * (most - mean) * 1e3 if longer else 0.0
        equal = COST_MODEL.step_cost(shape)
        assert corrected.step_cost(shape).device_ns == pytest.approx(equal.device_ns + added_ns, abs=2)


@pytest.mark.parametrize(
    ("model", "tensor_parallel", "kv_bytes", "reason"),
    [
        (specs.model("llama-3.1-8b"), 1, 2, "its hidden_size is"),
        (replace(TINY, dtype="fp8"), 1, 2, "its dtype is bf16, that of tiny fp8"),
        (TINY, 2, 2, "was measured with tensor_parallel 1, not 2"),
        (TINY, 1, 1, "was measured with a KV cache of 2 bytes a number"),
        (replace(TINY, sliding_window=512, num_sliding_layers=1), 1, 2, "holds no times of sliding windows"),
    ],
)
def test_a_profile_of_other_kernels_is_refused(model, tensor_parallel, kv_bytes, reason):
    with pytest.raises(ProfileError, match=reason):
        ProfiledCostModel(PROFILE, model, tensor_parallel, kv_dtype_bytes=kv_bytes)


def test_what_unequal_contexts_add_is_for_decodes_of_unequal_contexts_alone():
    apart = PROFILE.header.model_copy(update={"attention": AttentionLaunches(launches="separate")})
    skewed = apart.model_copy(
        update={"unequal_contexts": UnequalContexts(applied=True, decode_us=50.0, decode_each_us=3.0)}
    )
    plain, corrected = (ProfiledCostModel(replace(PROFILE, header=header), TINY) for header in (apart, skewed))
    equal, unequal = (StepShape((), 16, 16 * 128, longest, 16, 0) for longest in (128, 200))
    assert corrected.step_cost(equal) == plain.step_cost(equal)
    stretch = corrected.decode_stretch(16, 16 * 128, 200, 3).device_ns.tolist()
    assert stretch == [
        corrected.step_cost(StepShape((), 16, 16 * (128 + i), 200 + i, 16, 0)).device_ns for i in range(3)
    ]
    more_us = TINY.num_layers * (50 + 16 * 3)
    more_ns = corrected.step_cost(unequal).device_ns - plain.step_cost(unequal).device_ns
    assert more_ns == pytest.approx(more_us * 1e3, abs=2)
    mixed = StepShape([(64, 0)], 16, 16 * 128, 200, 17, 0)
    assert corrected.step_cost(mixed).device_ns - plain.step_cost(mixed).device_ns == pytest.approx(more_ns, abs=2)
