"""SGLang's memory budget: a share of the GPU's memory holds weights and KV, the rest activations and CUDA graphs.

KV bytes = share x free - weights, where `free` is what CUDA and its libraries leave before the weights are loaded
(`_profile_available_bytes` in `srt/mem_cache/kv_cache_configurator.py` of SGLang 0.5.23). Approximated: `free` is the
memory less `NON_TORCH_BYTES`; sliding layers keep every token, for which SGLang has a pool of its own.
"""

from __future__ import annotations

from .gpu_spec import GpuSpec
from .memory import NON_TORCH_BYTES, DoesNotFit, MemoryBudget, gib
from .model_spec import ModelSpec


def static_memory_budget(
    model: ModelSpec,
    gpu: GpuSpec,
    *,
    tensor_parallel: int,
    mem_fraction_static: float,
    page_size: int,
    kv_dtype_bytes: int | None = None,
    max_total_tokens: int | None = None,
) -> MemoryBudget:
    """The budget of each GPU in whole pages, all of which can be handed out.

    `max_total_tokens` pins the pool, whatever the share; else what the share leaves beside the weights is KV.
    Raises DoesNotFit where not a page is left, or where the pinned pool exceeds the memory, and ValueError where the
    model does not divide over the GPUs or a number is out of range.
    """
    model.check_tensor_parallel(tensor_parallel)
    if not 0 < mem_fraction_static <= 1:
        raise ValueError(f"mem_fraction_static is {mem_fraction_static}; it must be above 0, at most 1")
    if min(page_size, 1 if kv_dtype_bytes is None else kv_dtype_bytes) < 1 or (
        max_total_tokens is not None and max_total_tokens < page_size
    ):
        raise ValueError("page_size and KV bytes must be at least 1, max_total_tokens at least a page")
    weights = model.weight_bytes(tensor_parallel)
    free = gpu.memory_bytes - NON_TORCH_BYTES
    static = int(mem_fraction_static * free)
    page_bytes = model.kv_bytes_per_token(tensor_parallel, kv_dtype_bytes) * page_size
    limit = static if max_total_tokens is None else free
    pages = max(1, (limit - weights) // page_bytes) if max_total_tokens is None else max_total_tokens // page_size
    budget = MemoryBudget(
        weights_bytes=weights,
        kv_bytes=pages * page_bytes,
        activations_bytes=free - static,
        buffers_bytes=NON_TORCH_BYTES,
        budget_bytes=gpu.memory_bytes,
        memory_bytes=gpu.memory_bytes,
        kv_bytes_per_token=page_bytes // page_size,
        block_size=page_size,
        num_blocks=pages,
        num_null_blocks=0,
    )
    if weights + budget.kv_bytes > limit:
        share = f" ({mem_fraction_static:g} of {gib(free)})" if max_total_tokens is None else ""
        raise DoesNotFit(
            f"{model.name} does not fit {gpu.name} with tensor_parallel {tensor_parallel}:"
            f" weights {gib(weights)} + KV {gib(budget.kv_bytes)} ({pages * page_size:,} tokens)"
            f" exceed {gib(limit)}{share}",
            budget,
        )
    return budget
