"""SGLang's engine as the core takes it: its memory and its configuration."""

from __future__ import annotations

from ..policies.core.config import EngineConfig, PrefixIndex
from ..policies.core.gpu_spec import GpuSpec
from ..policies.core.memory import MemoryBudget
from ..policies.core.model_spec import ModelSpec
from ..policies.core.static_memory import static_memory_budget
from .sglang_defaults import ResolvedSglang


def sglang_budget(engine: ResolvedSglang, model: ModelSpec, gpu: GpuSpec, tensor_parallel: int) -> MemoryBudget:
    """How each GPU's memory is used. Raises DoesNotFit, or ValueError where the model does not divide."""
    return static_memory_budget(
        model,
        gpu,
        tensor_parallel=tensor_parallel,
        mem_fraction_static=engine.mem_fraction_static,
        page_size=engine.page_size,
        kv_dtype_bytes=sglang_kv_bytes(engine, model),
        max_total_tokens=engine.max_total_tokens,
    )


def sglang_config(engine: ResolvedSglang, budget: MemoryBudget, prefix_index: PrefixIndex) -> EngineConfig:
    """The core's limits and switches. Overlap is two plans in flight.

    A step holds a chunk of prefill and, mixed, a token for everyone that runs; without chunks a whole prompt.
    """
    assert engine.max_running_requests is not None, "with_kv_tokens comes first"
    prefill = max(engine.chunk_tokens or engine.context_length, engine.max_prefill_tokens)
    return EngineConfig(
        num_blocks=budget.num_blocks + 1,  # the core's block 0 is never handed out
        block_size=engine.page_size,
        max_num_seqs=engine.max_running_requests,
        max_num_batched_tokens=prefill + engine.max_running_requests,
        max_model_len=engine.context_length,
        depth=1 if engine.disable_overlap_schedule else 2,
        enable_prefix_caching=not engine.disable_radix_cache,
        enable_chunked_prefill=engine.chunk_tokens is not None,
        prefix_index=prefix_index,
        spare_tokens=engine.page_size + 1,  # an admission leaves more than a page of the memory
        asks_generously=True,
        keeps_urgent=not engine.schedule_low_priority_values_first,
    )


def sglang_kv_bytes(engine: ResolvedSglang, model: ModelSpec) -> int:
    """Bytes of a number in the KV cache."""
    return 1 if engine.kv_cache_dtype.startswith("fp8") else model.activation_bytes
