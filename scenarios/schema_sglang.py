"""The `engine` section of the sglang preset: SGLang's keys under SGLang's names. What is left out follows the GPU."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from .section import Count, Section


def _twin(name: str) -> str:
    return f"is a key of vLLM; the sglang preset calls it {name}"


_VLLM_TWINS = {
    "max_num_batched_tokens": _twin("chunked_prefill_size (prefill alone, which decode does not share)"),
    "max_num_seqs": _twin("max_running_requests"),
    "max_model_len": _twin("context_length"),
    "block_size": _twin("page_size"),
    "gpu_memory_utilization": _twin("mem_fraction_static (weights and KV, without activations)"),
    "num_gpu_blocks_override": _twin("max_total_tokens (in tokens)"),
    "enable_prefix_caching": _twin("disable_radix_cache (the opposite)"),
    "enable_chunked_prefill": _twin("chunked_prefill_size, where -1 is off"),
    "async_scheduling": _twin("disable_overlap_schedule (the opposite)"),
    "scheduling_policy": _twin("schedule_policy"),
    "scheduler_reserve_full_isl": "is a key of vLLM; SGLang always reserves the prompt, and outputs by "
    "schedule_conservativeness",
    "watermark": "is a key of vLLM; SGLang keeps room for outputs instead: schedule_conservativeness",
    "long_prefill_token_threshold": "is a key of vLLM; SGLang has one limit for a step's prefill: chunked_prefill_size",
    "kv_reservation": "is a key of the vllm preset; SGLang's memory is always paged",
    "swap_space_gib": "is a key of the vllm preset; SGLang has retracted requests recomputed",
    "tp_size": "is a machine's key; here it is hardware.tensor_parallel",
    "tensor_parallel_size": "is a machine's key; here it is hardware.tensor_parallel",
}

SchedulePolicy = Literal["fcfs", "lpm", "dfs-weight", "lof", "random", "hrrn", "shortest-prefill-first"]
RadixEvictionPolicy = Literal["lru", "lfu", "slru", "priority", "fifo", "filo", "mru"]


def _not_zero(tokens: int) -> int:
    if tokens == 0:
        raise PydanticCustomError("range", "0 is out of range: must be at least 1, or -1 for prompts as a whole")
    return tokens


ChunkTokens = Annotated[int, Field(ge=-1, le=10**12), AfterValidator(_not_zero)]


class SglangEngine(Section):
    """SGLang's knobs; None is its default for the GPU (`resolve_sglang`)."""

    twins: ClassVar[dict[str, str]] = _VLLM_TWINS

    preset: Literal["sglang", "sglang@0.5.23"]
    chunked_prefill_size: ChunkTokens | None = None
    """Prefill tokens of a step; -1 computes prompts whole."""
    max_prefill_tokens: Count | None = None
    """No further request joins a prefill that holds so many tokens."""
    max_running_requests: Count | None = None
    """Requests running at once."""
    context_length: Count | None = None
    """Prompt and output together; the model's own limit where left out."""
    page_size: Annotated[int, Field(ge=1, le=65536)] | None = None
    """Tokens of a KV page."""
    mem_fraction_static: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the GPU's memory for weights and KV together; the rest is for activations and CUDA graphs."""
    max_total_tokens: Count | None = None
    """Pins the tokens that the KV pool holds."""
    schedule_policy: SchedulePolicy | None = None
    schedule_conservativeness: Annotated[float, Field(ge=0, le=1e6)] | None = None
    """How much of the outputs to come is reserved at admission."""
    enable_mixed_chunk: bool | None = None
    """Decode together with a chunk of prefill."""
    disable_radix_cache: bool | None = None
    disable_overlap_schedule: bool | None = None
    """Plan a step only when the one under way has ended."""
    radix_eviction_policy: RadixEvictionPolicy | None = None
    enable_priority_scheduling: bool | None = None
    schedule_low_priority_values_first: bool | None = None
    """How SGLang's clients would write priorities. In a scenario a smaller one is more urgent, whatever this says; but
    under `priority` eviction SGLang lets low values go first, so that with this the urgent's prefixes do."""
    prefill_decode_interval: Annotated[int, Field(ge=0, le=10**9)] | None = None
    """Decode steps between two prefills; 0 is none."""
    dtype: Literal["auto", "bfloat16", "float16", "float32"] | None = None
    """Of activations, and of weights that are not quantized: those of 16 bits take the same time. float32: all
    is in it, which a data sheet of one's own must know (`fp32_tflop_s`)."""
    quantization: Literal["fp8", "awq", "gptq"] | None = None
    """Of the linear layers' weights; awq and gptq are int4 in groups of 128. Left out: as the model's file says."""
    kv_cache_dtype: Literal["auto", "bf16", "bfloat16", "fp8_e4m3", "fp8_e5m2"] | None = None
