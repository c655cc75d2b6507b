"""The analytic cost model: floors, monotonicity, stretches, and a measured decode line."""

import dataclasses
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmsim.policies.core import specs
from llmsim.policies.core.estimator import StepCost, StepShape
from llmsim.sim.cost_model.analytic import AnalyticCostModel
from llmsim.sim.cost_model.roofline import Efficiencies

LLAMA = specs.model("llama-3.1-8b")
PERFECT = Efficiencies(
    weights=1.0, kv=1.0, bf16=1.0, fp8=1.0, attention=1.0, kernel_gap_s=0.0, all_reduce_latency_s=0.0
)
SLOW_GPU = dataclasses.replace(specs.gpu("a100-80g"), name="slow", bf16_flop_per_s=2e12)
FLOP_BOUND = AnalyticCostModel(LLAMA, SLOW_GPU)


def every_cost_model():
    models = [specs.model(name) for name in specs.model_names()]
    models.append(dataclasses.replace(LLAMA, name="llama-fp8", dtype="fp8", qk_norm=True))
    models.append(dataclasses.replace(LLAMA, name="llama-int4", dtype="int4", attention_bias=True))
    models.append(dataclasses.replace(specs.model("tiny"), name="slides", sliding_window=700, num_sliding_layers=4))
    for gpu in [*map(specs.gpu, specs.gpu_names()), SLOW_GPU]:
        for model in models:
            if model.dtype == "fp8" and gpu.fp8_flop_per_s is None:
                continue
            for gpus in (1, 2):
                for efficiencies in (Efficiencies(), PERFECT):
                    yield AnalyticCostModel(model, gpu, gpus, efficiencies, kv_dtype_bytes=gpus)


COST_MODELS = list(every_cost_model())
H100 = AnalyticCostModel(LLAMA, specs.gpu("h100-sxm"))


@st.composite
def shapes(draw):
    chunks = draw(st.lists(st.tuples(st.integers(1, 8192), st.integers(0, 130_000)), max_size=3))
    decodes = draw(st.integers(0, 1024))
    context = draw(st.integers(decodes, 20_000 * decodes))
    drafts = draw(st.sampled_from([0, 0, decodes, 3 * decodes]))
    return StepShape(chunks, decodes, context, context, decodes + len(chunks), drafts)


cost_models = st.sampled_from(COST_MODELS)


@given(cost_models, shapes())
def test_no_step_beats_its_floors(cost_model, shape):
    cost = cost_model.step_cost(shape)
    assert cost.device_ns >= max(cost.compute_ns, cost.memory_ns)
    gpu, kernels = cost_model.roofline.gpu, cost_model.transformer.step_kernels(shape)
    flops_s = sum(
        Fraction(kernel.num_launches * kernel.flops) / Fraction(gpu.peak_flop_per_s(kernel.dtype)) for kernel in kernels
    )
    num_bytes = sum(kernel.num_launches * kernel.num_bytes for kernel in kernels)
    bytes_s = Fraction(num_bytes) / Fraction(gpu.bandwidth_bytes_per_s)
    for floor_s, floor_ns in ((flops_s, cost.compute_ns), (bytes_s, cost.memory_ns)):
        assert floor_ns <= floor_s * 10**9 <= (floor_ns + 1) * 1.001  # slopes are rounded down to a tick
        assert cost.device_ns >= floor_s * 10**9 * (1 - Fraction(1, 10**12))


@given(cost_models, shapes())
def test_a_step_is_the_sum_of_its_kernels(cost_model, shape):
    kernels = cost_model.transformer.step_kernels(shape)
    seconds = sum(kernel.num_launches * cost_model.roofline.launch_s(kernel) for kernel in kernels)
    device_ns = cost_model.step_cost(shape).device_ns
    assert device_ns == pytest.approx(seconds * 1e9, rel=1e-3, abs=1)
    assert device_ns >= seconds * 1e9 * (1 - 1e-12)  # rounded up, never down


@given(st.integers(1, 64), st.integers(1, 1000))
def test_decodes_bound_by_flops_are_rounded_up_too(num_decodes, mean_context):
    shape = StepShape((), num_decodes, num_decodes * mean_context, mean_context, num_decodes, 0)
    kernels = FLOP_BOUND.transformer.step_kernels(shape)
    seconds = sum(kernel.num_launches * FLOP_BOUND.roofline.launch_s(kernel) for kernel in kernels)
    assert FLOP_BOUND.step_cost(shape).device_ns >= seconds * 1e9 * (1 - 1e-12)


@given(cost_models, shapes())
def test_costs_are_integers_and_hold_no_memory(cost_model, shape):
    first = cost_model.step_cost(shape)
    assert all(type(value) is int for value in first[:4])
    assert not first.extrapolated
    assert cost_model.step_cost(shape) == first


def more_of(shape):
    """Larger shapes: a longer context, one more decode, a longer chunk, one more chunk, one more draft."""
    decodes, context = shape.num_decodes, shape.decode_context_tokens
    if decodes:
        yield shape._replace(decode_context_tokens=context + 1)
        yield shape._replace(num_drafts=shape.num_drafts + 1)
    if not shape.num_drafts:
        yield shape._replace(
            num_decodes=decodes + 1, decode_context_tokens=context + 1, num_samples=shape.num_samples + 1
        )
    yield shape._replace(prefill_chunks=[*shape.prefill_chunks, (1, 0)], num_samples=shape.num_samples + 1)
    if shape.prefill_chunks:
        (q, kv), *rest = shape.prefill_chunks
        yield shape._replace(prefill_chunks=[(q + 1, kv), *rest])
        yield shape._replace(prefill_chunks=[(q, kv + 1), *rest])


@given(cost_models, shapes())
def test_more_tokens_or_context_never_cost_less(cost_model, shape):
    less = cost_model.step_cost(shape)
    for larger in more_of(shape):
        more = cost_model.step_cost(larger)
        assert all(a <= b for a, b in zip(less[:4], more[:4], strict=True)), larger


@given(cost_models, st.integers(1, 1024), st.integers(1, 100_000), st.integers(0, 60))
def test_a_stretch_equals_its_steps_one_by_one(cost_model, num_decodes, mean_context, num_steps):
    context = num_decodes * mean_context
    stretch = cost_model.decode_stretch(num_decodes, context, mean_context, num_steps)
    assert all(column.dtype == "int64" and len(column) == num_steps for column in stretch)
    priced = [StepCost(*row) for row in zip(*(column.tolist() for column in stretch), strict=True)]
    stepped = [
        cost_model.step_cost(StepShape((), num_decodes, context + i * num_decodes, mean_context + i, num_decodes, 0))
        for i in range(num_steps)
    ]
    assert priced == stepped


def test_an_empty_step_costs_the_host_alone():
    assert H100.step_cost(StepShape()) == StepCost(0, 1_000_000, 0, 0)


def test_the_host_pays_for_each_request():
    assert H100.step_cost(StepShape([(100, 0), (5, 9)], 8, 800, 100, 10, 0)).host_ns == 1_080_000


@pytest.mark.parametrize("context", [256, 1024, 4096, 8192, 16384, 32768, 65536])
@pytest.mark.parametrize(("kv_dtype_bytes", "intercept_ms", "slope_ms"), [(2, 6.44, 4.37e-5), (1, 6.58, 2.37e-5)])
def test_h100_is_within_15_per_cent_of_the_measured_decode_line(context, kv_dtype_bytes, intercept_ms, slope_ms):
    """Llama-3.1-8B, vLLM 0.19.1, one request at a time (vLLM blog, 2026-04-22)."""
    cost_model = AnalyticCostModel(LLAMA, specs.gpu("h100-sxm"), kv_dtype_bytes=kv_dtype_bytes)
    cost = cost_model.step_cost(StepShape((), 1, context, context, 1, 0))
    itl_ms = max(cost.device_ns, cost.host_ns) / 1e6
    assert itl_ms == pytest.approx(intercept_ms + slope_ms * context, rel=0.15)


def test_a_long_prefill_is_bound_by_flops_and_a_decode_by_bytes():
    prefill = H100.step_cost(StepShape([(8192, 0)], 0, 0, 0, 1, 0))
    decode = H100.step_cost(StepShape((), 1, 1000, 1000, 1, 0))
    assert prefill.compute_ns > 3 * prefill.memory_ns
    assert decode.memory_ns > 5 * decode.compute_ns


def test_decode_attention_may_be_bound_by_flops():
    shorter, longer = FLOP_BOUND.decode_stretch(8, 80_000, 10_000, 2).device_ns.tolist()
    assert longer - shorter == pytest.approx(8 * 4 * 4096 * 32 / (0.45 * 2e12) * 1e9, abs=1)


def test_two_gpus_are_faster_but_not_twice():
    pair = AnalyticCostModel(LLAMA, specs.gpu("h100-sxm"), tensor_parallel=2)
    shape = StepShape((), 64, 64_000, 1000, 64, 0)
    alone, shared = H100.step_cost(shape).device_ns, pair.step_cost(shape).device_ns
    assert alone / 2 < shared < alone


def test_a_model_and_gpus_that_do_not_go_together_are_refused_at_once():
    with pytest.raises(ValueError, match="does not divide over tensor_parallel 3"):
        AnalyticCostModel(LLAMA, specs.gpu("h100-sxm"), tensor_parallel=3)
    with pytest.raises(ValueError, match="no fp8 tensor cores"):
        AnalyticCostModel(dataclasses.replace(LLAMA, dtype="fp8"), specs.gpu("a100-80g"))
    alone = dataclasses.replace(specs.gpu("h100-sxm"), interconnect_bytes_per_s=None)
    with pytest.raises(ValueError, match="no link to other GPUs"):
        AnalyticCostModel(LLAMA, alone, tensor_parallel=2)


def test_a_stretch_of_steps_of_minutes_is_exact_too():
    slowest = dataclasses.replace(SLOW_GPU, bf16_flop_per_s=2e10)
    cost_model = AnalyticCostModel(LLAMA, slowest)
    stretch = cost_model.decode_stretch(512, 512_000, 1000, 2)
    assert stretch.device_ns[0] > 60 * 10**9
    assert stretch.device_ns.tolist() == [
        cost_model.step_cost(StepShape((), 512, context, 1000, 512, 0)).device_ns for context in (512_000, 512_512)
    ]


GEMMA = AnalyticCostModel(specs.model("gemma-2-9b"), specs.gpu("h100-sxm"))


@given(st.integers(1, 300), st.integers(-40, 40), st.integers(0, 299))
def test_a_stretch_that_crosses_the_window_equals_its_steps(num_decodes, before, more):
    context = num_decodes * (4096 - before) - more % num_decodes
    stretch = GEMMA.decode_stretch(num_decodes, context, 4200, 60)
    for i, priced in enumerate(zip(*(column.tolist() for column in stretch), strict=True)):
        shape = StepShape((), num_decodes, context + i * num_decodes, 4200 + i, num_decodes, 0)
        assert GEMMA.step_cost(shape)[:4] == priced


def test_beyond_the_window_half_of_gemmas_layers_read_no_more():
    def memory_ns(context):
        return GEMMA.step_cost(StepShape((), 1, context, context, 1, 0)).memory_ns

    within, beyond = memory_ns(4000) - memory_ns(2000), memory_ns(8000) - memory_ns(6000)
    assert beyond == pytest.approx(within / 2, abs=2)


def test_int4_weights_are_read_faster_but_multiplied_as_bf16():
    int4 = AnalyticCostModel(dataclasses.replace(LLAMA, dtype="int4"), specs.gpu("h100-sxm"))
    decode, prefill = StepShape((), 1, 1, 1, 1, 0), StepShape([(8192, 0)], 0, 0, 0, 1, 0)
    assert int4.step_cost(decode).memory_ns < 0.4 * H100.step_cost(decode).memory_ns
    assert int4.step_cost(prefill).compute_ns == H100.step_cost(prefill).compute_ns


def test_fp8_weights_are_read_and_multiplied_faster():
    fp8 = AnalyticCostModel(dataclasses.replace(LLAMA, dtype="fp8"), specs.gpu("h100-sxm"))
    decode, prefill = StepShape((), 1, 1, 1, 1, 0), StepShape([(8192, 0)], 0, 0, 0, 1, 0)
    assert fp8.step_cost(decode).memory_ns < 0.6 * H100.step_cost(decode).memory_ns
    assert fp8.step_cost(prefill).device_ns < 0.7 * H100.step_cost(prefill).device_ns
