"""What is lost of KV memory, weighted by time, agrees with sums by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from llmsim.policies.core.records import StepRecord
from llmsim.sim.columns import StepColumns
from llmsim.sim.fragmentation import FragmentationFold, KVLayout
from llmsim.sim.overload import QueueFold
from llmsim.sim.step_fold import StepFold
from llmsim.sim.window import Window
from llmsim.tests.support.synthetic import step

CONTIGUOUS = KVLayout(4, shares_blocks=False, is_contiguous=True)
NOTHING = {"mean": None, "max": None}


def loss(layout: KVLayout, *records: StepRecord, begin: int = 0, end: int = 100) -> dict[str, Any]:
    """Of a memory of 10 blocks, from `begin` to `end`, in whatever chunks the steps come."""
    one_by_one, at_once = ([[record] for record in records], [records])
    found = [summary_of(layout, chunks, Window(begin, end)) for chunks in (one_by_one, at_once)]
    assert found[0] == found[1]
    return found[0]


def summary_of(layout: KVLayout, chunks: Iterable[Sequence[StepRecord]], window: Window) -> dict[str, Any]:
    fragmentation = FragmentationFold(window, 10, layout)
    fold = StepFold(window, 10, QueueFold(window), fragmentation)
    for chunk in chunks:
        fold.add(StepColumns.of_records(chunk))
    fold.close()
    return fragmentation.summary()


STEPS = (
    step(0, 0, 50, free_blocks=4, kv_tokens=10, num_waiting=1, refused_blocks=3),  # 14 unfilled, 4 in holes below 3
    step(1, 50, 25, free_blocks=2, kv_tokens=20, num_waiting=1, refused_blocks=3),  # 12 unfilled, 2 in holes
    step(2, 75, 25, free_blocks=2, kv_tokens=32, num_waiting=0, refused_blocks=0),  # none, and nobody is refused
)


def test_internal_is_held_but_unfilled_and_external_is_free_while_someone_is_refused() -> None:
    assert loss(CONTIGUOUS, *STEPS) == {
        "internal": {"mean": pytest.approx((14 * 50 + 12 * 25) / 100 / 40), "max": 14 / 40},
        "external": {"mean": pytest.approx((4 * 50 + 2 * 25) / 100 / 10), "max": 0.4},
        "num_refused_admissions": 2,
        "scattered_share": 0.5,
    }


def test_only_the_window_counts() -> None:
    got = loss(CONTIGUOUS, *STEPS, begin=40, end=60)
    assert got["internal"]["mean"] == pytest.approx((14 * 10 + 12 * 10) / 20 / 40)
    assert got["num_refused_admissions"] == 1


def test_idle_memory_holds_nothing() -> None:
    done = step(0, 0, 50, free_blocks=4, kv_tokens=10)
    assert loss(CONTIGUOUS, done)["internal"]["mean"] == pytest.approx(14 * 50 / 100 / 40)


def test_paged_blocks_of_ones_own_leave_their_last_part_unfilled_but_no_holes() -> None:
    got = loss(KVLayout(4, shares_blocks=False), *STEPS)
    assert got["internal"]["max"] == 14 / 40
    assert (got["external"], got["num_refused_admissions"], got["scattered_share"]) == (NOTHING, None, None)


def test_of_shared_blocks_nobody_can_say() -> None:
    assert loss(KVLayout(4), *STEPS)["internal"] == NOTHING


def test_without_refusals_there_is_no_share() -> None:
    got = loss(CONTIGUOUS, STEPS[2])
    assert (got["num_refused_admissions"], got["scattered_share"]) == (0, None)
