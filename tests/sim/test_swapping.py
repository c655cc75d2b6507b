"""Swapping in virtual time: copies are priced, stretches of steps leave the same rows, figures follow from events."""

from __future__ import annotations

from random import Random

import pytest

from llmsim.policies.core import specs
from llmsim.policies.core.plan import StepPlan, Swap
from llmsim.policies.core.records import EventKind, EventRecord
from llmsim.sim.cost_model.host_link import HostLink
from llmsim.sim.cost_model.roofline import Efficiencies
from llmsim.sim.executor import SimExecutor
from llmsim.sim.swap_figures import HostFacts, swap_figures
from llmsim.sim.window import Window
from llmsim.tests.support.driven_core import DrivenCore, core_of
from llmsim.tests.support.swapping import SWAPPING, contend
from llmsim.tests.support.toy_run import Rows, ToyCost, assert_same, run_toys

LINK = HostLink(block_bytes=1000, bytes_per_s=10**9)


def rows_of(seed: int, leaps: bool, patience: tuple[int, ...]) -> tuple[Rows, int]:
    random = Random(seed)
    core = core_of(
        SWAPPING,
        num_blocks=random.choice((40, 60)),
        block_size=random.choice((4, 8)),
        depth=random.choice((1, 2)),
        max_num_seqs=random.choice((8, 64)),
        enable_prefix_caching=random.random() < 0.5,
        num_host_blocks=random.choice((0, 10, 1000)),
    )
    return run_toys(core, random, seed, leaps, patience=patience, host_link=LINK)


def test_leaping_equals_stepping_where_sequences_are_swapped() -> None:
    seen = set()
    for seed in range(60):
        patience = (300, 1500, 100_000) if seed % 3 == 0 else ()
        stepped, leapt = (rows_of(seed, leaps, patience) for leaps in (False, True))
        assert_same(stepped, leapt, seed)
        seen |= {event.kind for event in leapt[0].events}
    assert {EventKind.SWAP_OUT, EventKind.SWAP_IN, EventKind.SWAP_FULL, EventKind.SWAP_DROP} <= seen


def test_copies_come_on_top_of_the_steps_device_time() -> None:
    driven = DrivenCore(core_of(SWAPPING, num_blocks=9, block_size=4, num_host_blocks=10))
    contend(driven)
    plan = driven.flights[-1].plan
    _, cost = SimExecutor(ToyCost(), LINK).execute(plan)
    alone = ToyCost().step_cost(plan.shape())
    assert plan.num_blocks_copied > 0
    assert cost == alone._replace(device_ns=alone.device_ns + 1000 * plan.num_blocks_copied)


def test_only_copies_are_priced() -> None:
    driven = DrivenCore(core_of(SWAPPING, num_blocks=9, block_size=4, num_host_blocks=10))
    victim = contend(driven)
    kinds = (EventKind.SWAP_OUT, EventKind.SWAP_FULL, EventKind.SWAP_DROP, EventKind.SWAP_IN)
    plan = StepPlan(0, 0, swaps=[Swap(kind, victim, None, 10**i, "decode") for i, kind in enumerate(kinds)])
    assert SimExecutor(ToyCost(), LINK).execute(plan)[1].device_ns == 1000 * (1 + 1000)


def test_a_link_is_half_of_the_data_sheets_at_the_stated_share() -> None:
    h100, gh200 = specs.gpu("h100-sxm"), specs.gpu("gh200-96g")
    link = HostLink.of(h100, 2**20, Efficiencies(host_link=0.5))
    assert link.bytes_per_s == 32e9
    assert link.copy_ns(3) == -(-3 * 2**20 // 32)
    assert HostLink.of(gh200, 2**20).bytes_per_s == 450e9 * 0.8
    with pytest.raises(ValueError, match="efficiency host_link is 0"):
        Efficiencies(host_link=0)


def event(step: int, kind: EventKind, name: str, num_blocks: int) -> EventRecord:
    return EventRecord(step, step * 100, kind, name, None, num_blocks, "decode")


def test_figures_follow_from_the_events() -> None:
    events = [
        event(1, EventKind.SWAP_OUT, "a", 4),
        event(2, EventKind.SWAP_OUT, "b", 3),
        event(3, EventKind.SWAP_IN, "a", 1),
        event(3, EventKind.SWAP_FULL, "c", 9),
        event(4, EventKind.SWAP_OUT, "a", 5),
        event(5, EventKind.SWAP_DROP, "b", 3),
    ]
    figures = swap_figures(events, HostFacts(10, LINK.block_bytes, LINK), Window(150, 100_150))
    assert figures == {
        "num_out": 2,
        "num_in": 1,
        "num_host_full": 1,
        "num_dropped": 1,
        "out_bytes": 8000,
        "in_bytes": 1000,
        "copy_s": 9e-6,
        "time_share": 0.09,
        "host_bytes": 10_000,
        "peak_host_bytes": 8000,
    }
    assert swap_figures([], HostFacts(10, LINK.block_bytes, LINK), Window(0, 0))["time_share"] is None
