"""Contiguous reservation: one range a request for all that it may become, and nothing ever runs short after that."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from llmsim.policies.core.config import EngineConfig
from llmsim.policies.core.contiguous import ContiguousMemory
from llmsim.policies.core.journal import JournalWriter, read_journal
from llmsim.policies.core.records import Blocked, Status
from llmsim.policies.core.replay import Replay
from llmsim.policies.core.request import Arrival, Output, Prompt, Request
from llmsim.tests.support.driven_core import BY_PRIORITY, VLLM, DrivenCore, Flight, core_of, request_of
from llmsim.tests.support.toy_run import Rows, assert_same, run_toys
from llmsim.tests.support.traffic import drive, random_core, random_requests, random_stops

STATIC: dict[str, dict[str, Any]] = VLLM | {"batching": {"name": "static"}}
CONTIGUOUS: dict[str, Any] = {"kv_reservation": "contiguous", "enable_prefix_caching": False}
SPECS = pytest.mark.parametrize("specs", [VLLM, BY_PRIORITY, STATIC], ids=["fcfs", "priority", "static"])


def driven_core(num_blocks: int, specs: dict[str, dict[str, Any]] = VLLM, **limits: Any) -> DrivenCore:
    return DrivenCore(core_of(specs, num_blocks=num_blocks, **CONTIGUOUS, **limits))


def table(driven: DrivenCore, name: str) -> list[int]:
    cache = driven.core.kv_cache
    assert isinstance(cache, ContiguousMemory)
    return cache.block_table(driven.core.sequences[name])


def test_a_request_reserves_all_of_prompt_and_max_tokens_but_the_last_token() -> None:
    driven = driven_core(20, block_size=4)
    driven.add(request_of("a", 5, 12), 0)  # 16 tokens of KV
    driven.add(request_of("b", 5, 13), 0)  # 17
    driven.step(0)
    assert table(driven, "a") == [1, 2, 3, 4]
    assert table(driven, "b") == [5, 6, 7, 8, 9]
    assert driven.core.num_free_blocks == 19 - 9
    assert driven.flights[0].plan.kv_tokens == 10


def test_equal_prompts_share_nothing() -> None:
    driven = driven_core(20, block_size=4)
    for name in "ab":
        driven.add(Request(name, 0, Prompt([(1, 0, 9)]), 4, 2), 0)
        driven.step(0)
    assert not set(table(driven, "a")) & set(table(driven, "b"))
    assert driven.accounts["b"].record.cached_tokens == 0


def holes_of_four() -> DrivenCore:
    """Two holes of four blocks each, with a request between them that runs on, and no other block free."""
    driven = driven_core(14, block_size=1, depth=1)
    for name, max_tokens in (("a", 2), ("b", 4), ("c", 2)):
        driven.add(request_of(name, 3 if max_tokens == 2 else 2, max_tokens), 0)
    driven.step(0)
    assert [table(driven, name) for name in "abc"] == [[1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13]]
    driven.step(1)
    assert set(driven.core.sequences) == {"b"}
    return driven


def test_what_fits_no_hole_waits_though_enough_is_free() -> None:
    driven = holes_of_four()
    driven.add(request_of("d", 3, 3), 2)
    flight = driven.step(2)
    assert flight is not None
    assert (flight.plan.blocked, flight.plan.refused_blocks) == (Blocked.MEMORY, 5)
    assert driven.core.num_free_blocks == 8
    driven.run(3)
    record = driven.accounts["d"].record
    assert (record.status, record.blocked_by) == (Status.FINISHED, Blocked.MEMORY)


def test_what_fits_a_hole_is_admitted_into_the_first() -> None:
    driven = holes_of_four()
    driven.add(request_of("d", 2, 3), 2)
    flight = driven.step(2)
    assert flight is not None
    assert (flight.plan.blocked, flight.plan.refused_blocks) == (None, 0)
    assert table(driven, "d") == [1, 2, 3, 4]


def test_the_watermark_stays_free_while_anyone_runs() -> None:
    driven = driven_core(21, block_size=1, watermark=0.2)
    for name in "abc":
        driven.add(request_of(name, 5, 4), 0)
    flight = driven.step(0)
    assert flight is not None
    assert [a.sequence.id for a in flight.plan.admitted] == ["a", "b"]
    assert flight.plan.refused_blocks == 8 + 4


def test_what_no_memory_ever_holds_is_refused() -> None:
    driven = driven_core(5, block_size=4)
    assert driven.add(request_of("fits", 10, 7), 0).status is Status.UNFINISHED
    assert driven.add(request_of("too large", 10, 8), 0).status is Status.REFUSED
    driven.run()
    assert driven.accounts["fits"].record.status is Status.FINISHED


class CheckedCore(DrivenCore):
    """A driven core that counts ranges and tokens for itself."""

    num_scattered = 0

    def plan(self, now_ns: int) -> Flight | None:
        flight = super().plan(now_ns)
        core = self.core
        core.check_integrity()
        if flight is not None:
            plan, size = flight.plan, core.config.block_size
            reserved = sum(-(-(s.end - 1) // size) for s in core.running.values())
            assert core.config.num_blocks - 1 - core.num_free_blocks == reserved
            batch = core.batch
            held = [batch.computed(s) if s.in_batch else s.computed for s in core.running.values()]
            assert plan.kv_tokens == sum(held) <= reserved * size
            assert not plan.preempted
            assert not plan.evictions
            assert (plan.refused_blocks > 0) == (plan.blocked is Blocked.MEMORY)
            self.num_scattered += 0 < plan.refused_blocks <= core.num_free_blocks
        return flight


def random_run(seed: int, specs: dict[str, dict[str, Any]], **pinned: Any) -> CheckedCore:
    random = Random(seed)
    requests = random_requests(random, 25)
    core = random_core(random, num_speculative_tokens=0, specs=specs, **CONTIGUOUS, **pinned)
    driven = CheckedCore(core, random_stops(random, requests))
    drive(driven, requests, random, abort_chance=random.choice((0.0, 0.03)))
    return driven


@SPECS
@pytest.mark.parametrize("depth", [1, 2])
def test_under_random_traffic_nobody_is_preempted_and_all_end(specs: dict[str, dict[str, Any]], depth: int) -> None:
    num_scattered, statuses = 0, set()
    for seed in range(25):
        driven = random_run(seed, specs, depth=depth)
        num_scattered += driven.num_scattered
        for account in driven.accounts.values():
            statuses.add(account.record.status)
            assert account.record.output_tokens == account.num_outputs
        assert driven.core.num_free_blocks == driven.core.config.num_blocks - 1
    # A static batch is admitted into empty memory, which has no holes.
    assert num_scattered == 0 if specs is STATIC else num_scattered > 20
    assert statuses == {Status.FINISHED, Status.REFUSED, Status.ABORTED}


def rows_of(seed: int, leaps: bool, specs: dict[str, dict[str, Any]]) -> tuple[Rows, int]:
    random = Random(seed)
    limits = {"num_blocks": random.choice((15, 30, 200)), "block_size": random.choice((1, 8, 16))}
    limits |= {"depth": random.choice((1, 2)), "max_num_seqs": random.choice((3, 64))}
    core = core_of(specs, **limits, **CONTIGUOUS)
    return run_toys(core, random, seed, leaps, patience=(300, 1500, 100_000) if seed % 3 == 0 else ())


@SPECS
def test_leaping_equals_stepping(specs: dict[str, dict[str, Any]]) -> None:
    num_refused = 0
    for seed in range(30):
        stepped, leapt = (rows_of(seed, leaps, specs) for leaps in (False, True))
        assert_same(stepped, leapt, seed)
        num_refused += sum(step.refused_blocks > 0 for step in leapt[0].steps)
    assert num_refused > 25


def test_a_replay_decides_the_same(tmp_path: Path) -> None:
    core = core_of(VLLM, num_blocks=12, block_size=4, depth=2, **CONTIGUOUS)
    driven = DrivenCore(core)
    with JournalWriter(path := tmp_path / "journal.jsonl.gz", core.config, VLLM, "test") as journal:
        written(driven, journal)
    replay = Replay(read_journal(path))
    assert replay.run() is None
    assert (replay.num_plans, replay.num_finished) == (len(driven.flights), 10)


def written(driven: DrivenCore, journal: JournalWriter) -> None:
    """Ten requests through a core, every call written down."""
    for number in range(10):
        request = request_of(f"r{number}", 3 + number, 9)
        journal.added(Arrival(0, request, Output(9)), 0)
        driven.add(request, 0)
    now_ns = 0
    while driven.is_busy:
        flight = driven.plan(now_ns)
        if flight is not None:
            journal.planned(flight.plan)
        if driven.pipe and (flight is None or len(driven.pipe) == 2):
            plan = driven.pipe[0].plan
            events = driven.commit(now_ns)
            journal.committed(plan, driven.result, events, now_ns)
        now_ns += 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"enable_prefix_caching": True}, "enable_prefix_caching: ranges share nothing"),
        ({"prefix_index": "radix_tree"}, "prefix_index radix_tree"),
        ({"num_speculative_tokens": 2}, "num_speculative_tokens: drafts may pass the range's end"),
        ({"refuses_what_never_fits": False}, "refuses_what_never_fits false: a range can be too large for ever"),
    ],
)
def test_what_does_not_go_with_it_is_an_error(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=f"^kv_reservation: contiguous cannot be combined with {says}$"):
        EngineConfig(num_blocks=9, **CONTIGUOUS | changes)
