"""What the keys of the vllm preset make the engine do, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from ..policies.core.specs import GIB
from .assembly import Assembly
from .policy_words import number
from .vllm_defaults import ResolvedVllm


def batch(assembly: Assembly) -> Iterator[str]:
    """How a batch is formed."""
    engine = _engine(assembly)
    yield (
        f"A step holds at most {number(engine.max_num_batched_tokens)} tokens, prefill and decode together "
        f"(max_num_batched_tokens), of at most {number(engine.max_num_seqs)} requests (max_num_seqs)."
    )
    if engine.async_scheduling:
        yield "A step is planned while the one before it runs, so a step takes the longer of host and GPU time."
    else:
        yield "A step is planned when the last has ended, so host and GPU times add up (async_scheduling: false)."


def prefill(assembly: Assembly) -> Iterator[str]:
    """How a long prefill is treated."""
    engine = _engine(assembly)
    tokens = number(engine.max_num_batched_tokens)
    if engine.enable_chunked_prefill:
        yield (
            f"A prompt longer than what is left of a step's {tokens} tokens is cut: the rest follows in the next "
            "steps, beside the decodes."
        )
    else:
        yield (
            f"A prompt is computed whole or waits (enable_chunked_prefill: false), so one of more than {tokens} tokens "
            "is refused."
        )


def cache(assembly: Assembly) -> Iterator[str]:
    """How KV is kept and reused."""
    engine, budget = _engine(assembly), assembly.budget
    usable = budget.num_blocks - 1
    source = (
        "a pinned number (num_gpu_blocks_override)"
        if engine.num_gpu_blocks_override is not None
        else f"what {number(engine.gpu_memory_utilization)} (gpu_memory_utilization) of "
        f"{budget.memory_bytes / GIB:.1f} GiB leaves for it"
    )
    yield (
        f"KV is kept in {number(usable)} blocks of {number(budget.block_size)} tokens, {source}: "
        f"{number(usable * budget.block_size)} tokens of {number(budget.kv_bytes_per_token)} bytes a GPU."
    )
    if engine.enable_prefix_caching:
        yield (
            "Full blocks stay findable by their content when a request has ended: who begins with the same tokens "
            "takes them over, but for a prompt's last token, which is always computed."
        )
    elif engine.kv_reservation == "paged":
        yield "Nothing is found again: a request's blocks are blank when it has ended (enable_prefix_caching: false)."
    else:
        yield (
            "A request holds one range of blocks for its prompt and all of its max_tokens from admission to end, "
            "filled or not, which it shares with nobody (kv_reservation: contiguous)."
        )


def pressure(assembly: Assembly) -> Iterator[str]:
    """Who waits and who gives way when memory is short."""
    engine, config = _engine(assembly), assembly.config
    if engine.kv_reservation == "contiguous":
        yield "A request waits until a slot and a hole for its whole range are free; nobody who runs ever gives way."
    elif engine.scheduler_reserve_full_isl:
        yield "A request waits until a slot and blocks for its whole prompt are free."
    else:
        yield (
            "A request waits until a slot and blocks for what a step computes of it are free "
            "(scheduler_reserve_full_isl: false)."
        )
    if kept := int(config.watermark * config.num_blocks):
        yield f"While others run, {number(kept)} blocks are left to them (watermark {number(engine.watermark)})."
    if engine.kv_reservation == "paged":
        yield "Who gives way loses its blocks and computes them again later, as far as the cache no longer holds them."
    yield (
        f"A request whose prompt and max_tokens exceed {number(engine.max_model_len)} tokens (max_model_len), or all "
        "blocks, is refused."
    )


def _engine(assembly: Assembly) -> ResolvedVllm:
    assert isinstance(assembly.engine, ResolvedVllm), assembly.engine.preset
    return assembly.engine
