"""What the YAML leaves out is what SGLang would choose, and what SGLang refuses is refused."""

from __future__ import annotations

import pytest

from llmsim.policies.core import specs
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.schema_sglang import SglangEngine
from llmsim.scenarios.sglang_defaults import ResolvedSglang, resolve_sglang

GIB = 2**30


def on(gpu: str, tensor_parallel: int = 1, **keys: object) -> ResolvedSglang:
    engine = SglangEngine.model_validate({"preset": "sglang", **keys})
    return resolve_sglang(engine, gpu, specs.gpu(gpu).memory_bytes, tensor_parallel, 131_072)


def test_defaults_are_those_of_sglang() -> None:
    assert on("h200-sxm") == ResolvedSglang(
        preset="sglang@0.5.23",
        chunked_prefill_size=8192,
        max_prefill_tokens=16384,
        max_running_requests=None,
        context_length=131_072,
        page_size=1,
        mem_fraction_static=0.903,
        max_total_tokens=None,
        schedule_policy="fcfs",
        schedule_conservativeness=1.0,
        enable_mixed_chunk=False,
        disable_radix_cache=False,
        disable_overlap_schedule=False,
        radix_eviction_policy="lru",
        enable_priority_scheduling=False,
        schedule_low_priority_values_first=False,
        prefill_decode_interval=0,
        dtype="auto",
        quantization=None,
        kv_cache_dtype="auto",
    )


@pytest.mark.parametrize(
    ("gpu", "tokens", "page"),
    [("l4", 4096, 1), ("a100-40g", 4096, 1), ("h100-sxm", 8192, 1), ("b200", 16384, 64), ("mi300x", 16384, 1)],
)
def test_chunk_and_page_follow_the_gpu(gpu: str, tokens: int, page: int) -> None:
    engine = on(gpu)
    assert (engine.chunked_prefill_size, engine.page_size) == (tokens, page)


@pytest.mark.parametrize(
    ("keys", "set_aside_mib"),
    [
        ({}, 512 + 1.5 * 8192 + 2 * 256 + 8 * 58 + 128),
        ({"tensor_parallel": 4}, 512 + 1.5 * 8192 + 2 * 512 + 8 * 58 + 512),
        ({"max_running_requests": 16}, 512 + 1.5 * 8192 + 2 * 16 + 8 * 58 + 128),
        ({"chunked_prefill_size": -1}, 512 + 1.5 * 16384 + 2 * 256 + 128),
        ({"chunked_prefill_size": 2048}, 10 * 1024),
    ],
)
def test_share_of_weights_and_kv_leaves_room_for_activations_and_graphs(
    keys: dict[str, int], set_aside_mib: float
) -> None:
    memory_mib = specs.gpu("h100-sxm").memory_bytes / 2**20
    assert on("h100-sxm", **keys).mem_fraction_static == round(1 - set_aside_mib / memory_mib, 3)


def test_a_share_that_is_given_is_kept() -> None:
    assert on("h100-sxm", mem_fraction_static=0.5).mem_fraction_static == 0.5


@pytest.mark.parametrize(
    ("keys", "kv_tokens", "running"),
    [
        ({}, 400_000, 2048),
        ({"context_length": 8192}, 49_152, 3072),
        ({"context_length": 8192}, 400_000, 4096),
        ({}, 1000, 500),
        ({"max_running_requests": 64}, 400_000, 64),
        ({"max_running_requests": 64}, 100, 50),
    ],
)
def test_requests_at_once_follow_the_kv_pool(keys: dict[str, int], kv_tokens: int, running: int) -> None:
    assert on("h100-sxm", **keys).with_kv_tokens(kv_tokens).max_running_requests == running


def test_chunks_are_off_at_minus_one() -> None:
    assert on("h100-sxm", chunked_prefill_size=-1).chunk_tokens is None
    assert on("h100-sxm", chunked_prefill_size=512).chunk_tokens == 512


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"context_length": 131_073}, "engine.context_length: 131073 is out of range: the model reaches 131072"),
        (
            {"chunked_prefill_size": 100, "page_size": 16},
            "engine.chunked_prefill_size: 100 is out of range: must be a multiple of page_size, 16",
        ),
        (
            {"max_total_tokens": 1},
            "engine.max_total_tokens: 1 is out of range: must be at least 2, twice the requests that may run",
        ),
        (
            {"max_total_tokens": 15, "page_size": 16},
            "engine.max_total_tokens: 15 is out of range: must be at least a page, 16",
        ),
    ],
)
def test_what_sglang_refuses_is_an_error(keys: dict[str, object], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        on("h100-sxm", **keys)
    assert str(caught.value) == says


def test_a_gpu_that_sglangs_rule_leaves_nothing_of_needs_a_share() -> None:
    with pytest.raises(ScenarioError, match=r"would leave nothing of 3\.0 GiB to weights and KV; give a value"):
        resolve_sglang(SglangEngine(preset="sglang"), "toy", 3 * GIB, 1, 131_072)
