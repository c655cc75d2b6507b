"""KV memory over a radix tree: what an admission takes, and what is given back."""

from __future__ import annotations

from llmsim.policies import registry
from llmsim.policies.core.radix_cache import RadixCache
from llmsim.policies.core.records import record_of
from llmsim.policies.core.request import Prompt, Request
from llmsim.policies.core.sequence import Sequence

PAGE = 4


def cache_of(num_pages: int) -> RadixCache:
    lru = registry.create("eviction", {"name": "lru"})
    return RadixCache(num_pages + 1, PAGE, lru, caching=True, asks_generously=False)


def waiting(name: str, own_tokens: int) -> Sequence:
    """A request for 16 tokens that all share, and some of its own."""
    number = sum(name.encode())
    request = Request(name, 0, Prompt([(0, 0, 16), (number, 0, own_tokens)]), 8, -number)
    return Sequence(request, 0, record_of(request))


def compute(cache: RadixCache, sequence: Sequence) -> None:
    """Its whole prompt, as a step that was planned and committed."""
    cache.acquire(sequence, cache.match(sequence))
    sequence.computed = sequence.num_locked
    cache.extend(sequence, sequence.num_tokens, sequence.num_tokens, "admit")
    sequence.computed = sequence.num_tokens
    cache.prefilled(sequence, sequence.num_tokens)


def test_a_cached_prefix_that_nobody_uses_is_free_until_it_is_taken() -> None:
    cache, first, second = cache_of(8), waiting("a", 4), waiting("b", 4)
    compute(cache, first)
    match = cache.match(second)
    assert (match.num_blocks, cache.pool.num_free) == (4, 3)
    assert cache.num_to_admit(second, match, 20) == 1  # the first one holds the other four
    cache.finish(first)
    assert cache.pool.num_free == 8
    match = cache.match(second)
    assert cache.num_to_admit(second, match, 20) == 5  # which count as free now, and will not any more
    before = cache.pool.num_free
    compute(cache, second)
    assert before - cache.pool.num_free == 5


def test_an_end_gives_back_everything_but_what_the_tree_keeps() -> None:
    cache, sequence = cache_of(8), waiting("a", 3)
    compute(cache, sequence)
    assert (cache.pool.num_blank, cache.tree.num_protected) == (3, 16)
    cache.finish(sequence)
    assert (cache.pool.num_blank, cache.tree.num_protected, cache.tree.num_tokens) == (4, 0, 16)


def test_a_retraction_keeps_what_had_entered() -> None:
    cache, sequence = cache_of(8), waiting("a", 4)
    compute(cache, sequence)
    sequence.computed += 4
    cache.take(1, "a", "decode")
    cache.release(sequence)
    assert (cache.pool.num_blank, cache.tree.num_evictable, cache.pool.num_free) == (3, 20, 8)
