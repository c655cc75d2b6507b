"""The gap pool merges equal gaps and loses none."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmsim.sim import gaps as module
from llmsim.sim.gaps import MIN_BATCHES, MIN_PENDING, GapPool, union


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=200))
def test_pool_counts_every_token_once_however_often_it_merges(pairs: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MIN_PENDING", 8)
        patch.setattr(module, "MIN_BATCHES", 4)
        pool, expected = GapPool(), Counter[int]()
        for gap_ns, count in pairs:
            pool.add(gap_ns, count)
            expected[gap_ns] += count
        merged, batches = pool.merged(), pool.batches()
    together = union(batches) if batches else merged
    assert all(np.array_equal(a, b) for a, b in zip(together, merged, strict=True))
    assert merged.gap_ns.tolist() == sorted(expected)
    assert merged.num_tokens.tolist() == [expected[gap] for gap in sorted(expected)]


def test_pool_can_be_read_and_then_added_to() -> None:
    pool = GapPool()
    pool.add(5, 1)
    assert pool.merged().num_tokens.tolist() == [1]
    pool.add(5, 2)
    pool.add(3, 4)
    assert pool.merged().gap_ns.tolist() == [3, 5]
    assert pool.merged().num_tokens.tolist() == [4, 3]


@pytest.mark.parametrize("num_pairs", [1000, MIN_PENDING + 1000, 5 * MIN_PENDING + 1000])
def test_batches_are_in_order_of_time_and_about_as_long(num_pairs: int) -> None:
    pool = GapPool()
    for gap_ns in range(num_pairs):
        pool.add(gap_ns, 1)
    batches = pool.batches()
    assert MIN_BATCHES <= len(batches) <= 2 * MIN_BATCHES
    assert np.concatenate([batch.gap_ns for batch in batches]).tolist() == list(range(num_pairs))
    lengths = [len(batch.gap_ns) for batch in batches[:-1]]
    assert max(lengths) - min(lengths) <= MIN_BATCHES
