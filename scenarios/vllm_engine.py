"""vLLM's engine as the core takes it: its memory and its configuration."""

from __future__ import annotations

from ..policies.core.config import EngineConfig, PrefixIndex
from ..policies.core.gpu_spec import GpuSpec
from ..policies.core.memory import MemoryBudget, memory_budget
from ..policies.core.model_spec import ModelSpec
from .vllm_defaults import ResolvedVllm


def vllm_budget(engine: ResolvedVllm, model: ModelSpec, gpu: GpuSpec, tensor_parallel: int) -> MemoryBudget:
    """How each GPU's memory is used. Raises DoesNotFit, or ValueError where the model does not divide."""
    return memory_budget(
        model,
        gpu,
        tensor_parallel=tensor_parallel,
        gpu_memory_utilization=engine.gpu_memory_utilization,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        max_num_seqs=engine.max_num_seqs,
        block_size=engine.block_size,
        kv_dtype_bytes=vllm_kv_bytes(engine, model),
        num_blocks=engine.num_gpu_blocks_override,
    )


def vllm_config(engine: ResolvedVllm, budget: MemoryBudget, prefix_index: PrefixIndex) -> EngineConfig:
    """The core's limits and switches."""
    return EngineConfig(
        num_blocks=budget.num_blocks,
        block_size=engine.block_size,
        max_num_seqs=engine.max_num_seqs,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        max_model_len=engine.max_model_len,
        depth=2 if engine.async_scheduling else 1,
        enable_prefix_caching=engine.enable_prefix_caching,
        enable_chunked_prefill=engine.enable_chunked_prefill,
        reserve_full_prompt=engine.scheduler_reserve_full_isl,
        watermark=engine.watermark,
        prefix_index=prefix_index,
        kv_reservation=engine.kv_reservation,
    )


def vllm_kv_bytes(engine: ResolvedVllm, model: ModelSpec) -> int:
    """Bytes of a number in the KV cache."""
    return 1 if engine.kv_cache_dtype == "fp8" else model.activation_bytes
