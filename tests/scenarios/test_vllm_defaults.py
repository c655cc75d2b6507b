"""What the YAML leaves out is what vLLM would choose, and what vLLM refuses is refused."""

from __future__ import annotations

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.schema_vllm import VllmEngine
from llmsim.scenarios.vllm_defaults import ResolvedVllm, resolve_vllm

GIB = 2**30


def on_h100(**keys: object) -> ResolvedVllm:
    return resolve_vllm(VllmEngine.model_validate(keys), "h100-sxm", 79 * GIB, 131_072)


@pytest.mark.parametrize(
    ("gpu", "gib", "tokens", "seqs"),
    [
        ("b200", 180, 16384, 1024),
        ("h200-sxm", 139, 8192, 1024),
        ("h100-sxm", 79, 8192, 1024),
        ("a100-80g", 79, 2048, 256),
        ("rtx-4090", 24, 2048, 256),
    ],
)
def test_step_limits_follow_the_gpus_memory(gpu: str, gib: int, tokens: int, seqs: int) -> None:
    engine = resolve_vllm(VllmEngine(), gpu, gib * GIB, 131_072)
    assert (engine.max_num_batched_tokens, engine.max_num_seqs) == (tokens, seqs)


def test_defaults_are_those_of_vllm() -> None:
    engine = on_h100()
    assert engine == ResolvedVllm(
        preset="vllm@0.33",
        max_num_batched_tokens=8192,
        max_num_seqs=1024,
        max_model_len=131_072,
        block_size=16,
        gpu_memory_utilization=0.92,
        num_gpu_blocks_override=None,
        dtype="auto",
        quantization=None,
        kv_cache_dtype="auto",
        enable_prefix_caching=True,
        enable_chunked_prefill=True,
        async_scheduling=True,
        scheduler_reserve_full_isl=True,
        watermark=0.0,
        long_prefill_token_threshold=0,
        scheduling_policy="fcfs",
        kv_reservation="paged",
        swap_space_gib=None,
    )


def test_what_is_given_is_kept_even_where_it_is_zero_or_false() -> None:
    engine = on_h100(enable_prefix_caching=False, async_scheduling=False, watermark=0, preset="vllm@0.33")
    assert not engine.enable_prefix_caching
    assert not engine.async_scheduling


def test_contiguous_reservation_turns_prefix_caching_off() -> None:
    assert not on_h100(kv_reservation="contiguous").enable_prefix_caching
    assert on_h100(kv_reservation="paged").enable_prefix_caching


def test_default_number_of_requests_gives_way_to_a_smaller_step() -> None:
    assert on_h100(max_num_batched_tokens=512).max_num_seqs == 512


def test_default_step_is_no_longer_than_all_requests_together() -> None:
    assert on_h100(max_num_seqs=1, max_model_len=1000).max_num_batched_tokens == 1000


def test_default_step_holds_a_whole_prompt_without_chunked_prefill() -> None:
    assert on_h100(enable_chunked_prefill=False).max_num_batched_tokens == 131_072


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (
            {"max_num_batched_tokens": 32, "max_num_seqs": 64},
            "engine.max_num_batched_tokens: 32 is out of range: must be at least max_num_seqs, 64",
        ),
        (
            {"max_model_len": 131_073},
            "engine.max_model_len: 131073 is out of range: the model reaches 131072",
        ),
        (
            {"enable_chunked_prefill": False, "max_num_batched_tokens": 8192},
            "engine.max_num_batched_tokens: 8192 is out of range: "
            "without chunked prefill at least max_model_len, 131072",
        ),
        (
            {"kv_reservation": "contiguous", "enable_prefix_caching": True},
            "engine.kv_reservation: 'contiguous' cannot share blocks, "
            "which engine.enable_prefix_caching: true asks for",
        ),
        (
            {"kv_reservation": "contiguous", "scheduler_reserve_full_isl": False},
            "engine.kv_reservation: 'contiguous' reserves all of a request, "
            "which engine.scheduler_reserve_full_isl: false forbids",
        ),
    ],
)
def test_what_cannot_run_is_an_error(keys: dict[str, object], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        on_h100(**keys)
    assert str(caught.value) == says
