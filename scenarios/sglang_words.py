"""What the keys of the sglang preset make the engine do, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from ..policies.core.specs import GIB
from .assembly import Assembly
from .policy_words import number
from .sglang_defaults import ResolvedSglang


def batch(assembly: Assembly) -> Iterator[str]:
    """How a batch is formed."""
    engine = _engine(assembly)
    mixes = engine.enable_mixed_chunk and engine.chunk_tokens is not None
    yield (
        "A step either computes prompts or gives everyone that runs one token"
        + (", or both at once (enable_mixed_chunk)" if mixes else "")
        + f"; at most {number(assembly.config.max_num_seqs)} requests run (max_running_requests)."
    )
    if engine.enable_mixed_chunk and not mixes:
        yield "SGLang mixes chunks alone: with chunked_prefill_size -1 enable_mixed_chunk does nothing."
    if engine.prefill_decode_interval:
        yield f"After a prefill come {number(engine.prefill_decode_interval)} decode steps (prefill_decode_interval)."
    if engine.disable_overlap_schedule:
        yield "A step is planned when the last has ended: host and GPU times add up (disable_overlap_schedule)."
    else:
        yield "A step is planned while the one before it runs, so a step takes the longer of host and GPU time."


def prefill(assembly: Assembly) -> Iterator[str]:
    """How a long prefill is treated."""
    engine = _engine(assembly)
    most = number(engine.max_prefill_tokens)
    if engine.chunk_tokens is not None:
        tokens = number(engine.chunk_tokens)
        yield f"A prefill step holds {tokens} tokens (chunked_prefill_size); a longer prompt is cut."
    else:
        yield "A prompt is computed whole (chunked_prefill_size: -1)."
    yield f"No further request joins a prefill that holds {most} tokens (max_prefill_tokens)."


def cache(assembly: Assembly) -> Iterator[str]:
    """How KV is kept and reused."""
    engine, budget = _engine(assembly), assembly.budget
    source = (
        "a pinned number (max_total_tokens)"
        if engine.max_total_tokens is not None
        else f"what {number(engine.mem_fraction_static)} (mem_fraction_static) of {budget.memory_bytes / GIB:.1f} GiB "
        "leaves beside the weights"
    )
    yield (
        f"KV is kept in {number(budget.num_blocks)} pages of {number(engine.page_size)} tokens, {source}: "
        f"{number(budget.num_blocks * engine.page_size)} tokens of {number(budget.kv_bytes_per_token)} bytes a GPU."
    )
    if engine.disable_radix_cache:
        yield "Nothing is found again: a request's pages are blank when it has ended (disable_radix_cache)."
    else:
        yield "What requests computed stays in a radix tree: who begins with the same tokens takes it over."


def pressure(assembly: Assembly) -> Iterator[str]:
    """Who waits and who gives way when memory is short."""
    engine = _engine(assembly)
    yield (
        "A request waits until there is room for its prompt and for a share of all outputs to come, which "
        f"schedule_conservativeness {number(engine.schedule_conservativeness)} scales."
    )
    yield "Who gives way loses its pages and computes them again later, as far as the tree no longer holds them."
    yield (
        f"A request whose prompt and max_tokens exceed {number(engine.context_length)} tokens (context_length), or the "
        "pool, is refused."
    )


def _engine(assembly: Assembly) -> ResolvedSglang:
    assert isinstance(assembly.engine, ResolvedSglang), assembly.engine.preset
    return assembly.engine
