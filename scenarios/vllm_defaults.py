"""Fills in what the `engine` section leaves out of vLLM's keys, as vLLM 0.33's server does on that GPU and model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..policies.core.config import KVReservation
from .errors import ScenarioError
from .schema_vllm import VllmEngine
from .section import given_or

_GIB = 2**30


@dataclass(frozen=True, slots=True)
class ResolvedVllm:
    """Every knob of the engine, explicit; the meaning of each stands in `schema_vllm.VllmEngine`."""

    preset: str
    """With the version that it reproduces."""
    max_num_batched_tokens: int
    max_num_seqs: int
    max_model_len: int
    block_size: int
    gpu_memory_utilization: float
    num_gpu_blocks_override: int | None
    """None: as many as the memory holds."""
    dtype: Literal["auto", "bfloat16", "float16", "float32"]
    quantization: Literal["fp8", "awq", "gptq"] | None
    """None: as the model's file says."""
    kv_cache_dtype: Literal["auto", "bf16", "fp8"]
    """`auto` is the model's own."""
    enable_prefix_caching: bool
    enable_chunked_prefill: bool
    async_scheduling: bool
    scheduler_reserve_full_isl: bool
    watermark: float
    long_prefill_token_threshold: int
    scheduling_policy: str
    kv_reservation: KVReservation
    swap_space_gib: float | None
    """None: no host memory for KV."""


def resolve_vllm(
    engine: VllmEngine, gpu_name: str, gpu_memory_bytes: int, model_max_len: int, file: Path | None = None
) -> ResolvedVllm:
    """The engine with vLLM's defaults in place of what is left out.

    Raises ScenarioError (naming `file`) where vLLM would refuse to start: a context longer than the model's,
    fewer tokens a step than requests, or prompts that must run whole but cannot fit a step.
    """
    max_model_len = given_or(engine.max_model_len, model_max_len)
    chunked = given_or(engine.enable_chunked_prefill, True)
    reservation: KVReservation = given_or(engine.kv_reservation, "paged")
    max_num_batched_tokens, max_num_seqs = _batch_limits(engine, gpu_name, gpu_memory_bytes, max_model_len, chunked)
    resolved = ResolvedVllm(
        preset="vllm@0.33",
        max_num_batched_tokens=max_num_batched_tokens,
        max_num_seqs=max_num_seqs,
        max_model_len=max_model_len,
        block_size=given_or(engine.block_size, 16),
        gpu_memory_utilization=given_or(engine.gpu_memory_utilization, 0.92),
        num_gpu_blocks_override=engine.num_gpu_blocks_override,
        dtype=given_or(engine.dtype, "auto"),
        quantization=engine.quantization,
        kv_cache_dtype=given_or(engine.kv_cache_dtype, "auto"),
        enable_prefix_caching=given_or(engine.enable_prefix_caching, reservation == "paged"),
        enable_chunked_prefill=chunked,
        async_scheduling=given_or(engine.async_scheduling, True),
        scheduler_reserve_full_isl=given_or(engine.scheduler_reserve_full_isl, True),
        watermark=given_or(engine.watermark, 0.0),
        long_prefill_token_threshold=given_or(engine.long_prefill_token_threshold, 0),
        scheduling_policy=given_or(engine.scheduling_policy, "fcfs"),
        kv_reservation=reservation,
        swap_space_gib=engine.swap_space_gib,
    )
    _check(resolved, model_max_len, file)
    return resolved


def _tier(gpu_name: str, gpu_memory_bytes: int) -> tuple[int, int]:
    """Default `(max_num_batched_tokens, max_num_seqs)` of the server by the GPU's memory."""
    if gpu_memory_bytes >= 160 * _GIB:
        return 16384, 1024
    if gpu_memory_bytes >= 70 * _GIB and "a100" not in gpu_name.lower():
        return 8192, 1024
    return 2048, 256


def _batch_limits(
    engine: VllmEngine, gpu_name: str, gpu_memory_bytes: int, max_model_len: int, chunked: bool
) -> tuple[int, int]:
    """Tokens and requests of a step: defaults give way to what is given, and to the model's length.

    Source: `_set_default_max_num_seqs_and_batched_tokens_args` in vLLM's `engine/arg_utils.py`.
    """
    default_tokens, default_seqs = _tier(gpu_name, gpu_memory_bytes)
    seqs = given_or(engine.max_num_seqs, default_seqs)
    if engine.max_num_batched_tokens is not None:
        tokens = engine.max_num_batched_tokens
    else:
        whole = default_tokens if chunked else max(max_model_len, default_tokens)
        tokens = min(seqs * max_model_len, whole)
    return tokens, seqs if engine.max_num_seqs is not None else min(seqs, tokens)


def _check_reservation(engine: ResolvedVllm, file: Path | None) -> None:
    if engine.kv_reservation == "paged":
        return
    if engine.enable_prefix_caching:
        message = "'contiguous' cannot share blocks, which engine.enable_prefix_caching: true asks for"
        raise ScenarioError(file, "engine.kv_reservation", message)
    if not engine.scheduler_reserve_full_isl:
        message = "'contiguous' reserves all of a request, which engine.scheduler_reserve_full_isl: false forbids"
        raise ScenarioError(file, "engine.kv_reservation", message)


def _check(engine: ResolvedVllm, model_max_len: int, file: Path | None) -> None:
    _check_reservation(engine, file)
    tokens, max_model_len = engine.max_num_batched_tokens, engine.max_model_len
    if max_model_len > model_max_len:
        message = f"{max_model_len} is out of range: the model reaches {model_max_len}"
        raise ScenarioError(file, "engine.max_model_len", message)
    if tokens < engine.max_num_seqs:
        message = f"{tokens} is out of range: must be at least max_num_seqs, {engine.max_num_seqs}"
        raise ScenarioError(file, "engine.max_num_batched_tokens", message)
    if not engine.enable_chunked_prefill and tokens < max_model_len:
        message = f"{tokens} is out of range: without chunked prefill at least max_model_len, {max_model_len}"
        raise ScenarioError(file, "engine.max_num_batched_tokens", message)
