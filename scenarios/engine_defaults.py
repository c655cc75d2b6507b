"""The engine of a run: what the preset's server would choose where the scenario leaves a key out."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from .errors import ScenarioError
from .preset_policies import PolicySpecs, resolve_policies
from .schema import Scenario
from .schema_sglang import SglangEngine
from .sglang_defaults import ResolvedSglang, check_policies, resolve_sglang
from .sglang_policies import SCHEDULE_POLICIES
from .vllm_defaults import ResolvedVllm, resolve_vllm

_SGLANG_NAMES = {policy: name for name, policy in SCHEDULE_POLICIES.items()} | {"priority": "fcfs"}

ResolvedEngine: TypeAlias = ResolvedVllm | ResolvedSglang


def resolve(
    scenario: Scenario, gpu_memory_bytes: int, model_max_len: int, gpu_name: str | None = None
) -> ResolvedEngine:
    """The scenario's engine with all defaults, in agreement with its policies; raises ScenarioError.

    `gpu_name` is the GPU's own where the scenario gives a path.
    """
    file, gpu, asked = scenario.source, gpu_name or scenario.hardware.gpu or "", scenario.engine
    policies = resolve_policies(scenario)
    order = str(policies["scheduling"]["name"])
    if isinstance(asked, SglangEngine):
        tensor_parallel = scenario.hardware.tensor_parallel
        sglang = resolve_sglang(asked, gpu, gpu_memory_bytes, tensor_parallel, model_max_len, file)
        asked_order = asked.schedule_policy or _SGLANG_NAMES.get(order, order)
        sglang = replace(sglang, schedule_policy=asked_order, radix_eviction_policy=str(policies["eviction"]["name"]))
        check_policies(sglang, file)
        _check_chunk_size(scenario, policies, "chunked_prefill_size", sglang.chunk_tokens, sglang.page_size)
        return sglang
    vllm = resolve_vllm(asked, gpu, gpu_memory_bytes, model_max_len, file)
    _check_chunk_size(scenario, policies, "max_num_batched_tokens", vllm.max_num_batched_tokens)
    return replace(vllm, scheduling_policy=order)


def _check_chunk_size(scenario: Scenario, policies: PolicySpecs, key: str, cap: int | None, page_size: int = 1) -> None:
    """A chunk is at most what a step may hold, and at least a page: SGLang cuts prompts at whole pages."""
    tokens = policies["chunk_size"].get("tokens")
    if isinstance(tokens, int) and cap is not None and tokens > cap:
        message = f"{tokens} is out of range: at most engine.{key}, {cap}"
        raise ScenarioError(scenario.source, "policies.chunk_size.tokens", message)
    if isinstance(tokens, int) and tokens < page_size:
        message = f"{tokens} is out of range: at least engine.page_size, {page_size}"
        raise ScenarioError(scenario.source, "policies.chunk_size.tokens", message)
