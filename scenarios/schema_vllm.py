"""The `engine` section of the vllm preset: vLLM's keys under vLLM's names. What is left out follows the GPU."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from .section import Count, Section


def _twin(name: str) -> str:
    return f"is a key of SGLang; the vllm preset calls it {name}"


_SGLANG_TWINS = {
    "chunked_prefill_size": _twin("max_num_batched_tokens"),
    "max_prefill_tokens": _twin("max_num_batched_tokens"),
    "max_running_requests": _twin("max_num_seqs"),
    "context_length": _twin("max_model_len"),
    "page_size": _twin("block_size"),
    "mem_fraction_static": _twin("gpu_memory_utilization"),
    "max_total_tokens": _twin("num_gpu_blocks_override (in blocks, the null block included)"),
    "schedule_policy": _twin("scheduling_policy"),
    "disable_radix_cache": _twin("enable_prefix_caching (the opposite)"),
    "disable_overlap_schedule": _twin("async_scheduling (the opposite)"),
    "radix_eviction_policy": "is a key of SGLang; here it is policies.eviction.name",
    "schedule_conservativeness": "is a key of SGLang; vLLM reserves no outputs, but watermark keeps blocks free",
    "enable_mixed_chunk": "is a key of SGLang; vLLM always mixes prefill and decode",
    "prefill_decode_interval": "is a key of SGLang; vLLM always mixes prefill and decode",
    "enable_priority_scheduling": "is a key of SGLang; the vllm preset calls it scheduling_policy: priority",
    "schedule_low_priority_values_first": "is a key of SGLang; to vLLM a smaller priority is always more urgent",
    "swap_space": "is vLLM V0's; here it is swap_space_gib, with policies.preemption: {name: ..., mode: swap}",
    "tp_size": "is a key of SGLang; here it is hardware.tensor_parallel",
    "tensor_parallel_size": "is a machine's key; here it is hardware.tensor_parallel",
}


class VllmEngine(Section):
    """vLLM's knobs; None is its default for the GPU (`resolve_vllm`)."""

    twins: ClassVar[dict[str, str]] = _SGLANG_TWINS

    preset: Literal["vllm", "vllm@0.33"] = "vllm"
    max_num_batched_tokens: Count | None = None
    """Tokens of a step, prefill and decode together."""
    max_num_seqs: Count | None = None
    """Requests running at once."""
    max_model_len: Count | None = None
    """Prompt and output together; the model's own limit where left out."""
    block_size: Annotated[int, Field(ge=1, le=65536)] | None = None
    """Tokens of a KV block."""
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None
    num_gpu_blocks_override: Annotated[int, Field(ge=2, le=10**12)] | None = None
    """Pins the number of KV blocks, the null block (never handed out) included."""
    dtype: Literal["auto", "bfloat16", "float16", "float32"] | None = None
    """Of activations, and of weights that are not quantized: those of 16 bits take the same time. float32: all
    is in it, which a data sheet of one's own must know (`fp32_tflop_s`)."""
    quantization: Literal["fp8", "awq", "gptq"] | None = None
    """Of the linear layers' weights; awq and gptq are int4 in groups of 128. Left out: as the model's file says."""
    kv_cache_dtype: Literal["auto", "bf16", "fp8"] | None = None
    enable_prefix_caching: bool | None = None
    enable_chunked_prefill: bool | None = None
    async_scheduling: bool | None = None
    """Plan a step before the one under way has ended."""
    scheduler_reserve_full_isl: bool | None = None
    """Admit a request only when blocks for its whole prompt are free."""
    watermark: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share of the blocks kept free at admission while something runs."""
    long_prefill_token_threshold: Annotated[int, Field(ge=0, le=10**12)] | None = None
    """Most tokens of one request in a step; 0 is no limit."""
    scheduling_policy: Literal["fcfs", "priority"] | None = None
    kv_reservation: Literal["paged", "contiguous"] | None = None
    """Not vLLM's: `contiguous` reserves one range for prompt and max_tokens at admission, without prefix caching."""
    swap_space_gib: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """Host memory for each GPU, for the KV of preempted requests where `policies.preemption` has `mode: swap`. A key of
    this project's own: vLLM V0's `swap_space` was 4 GiB; vLLM 0.33 recomputes."""
