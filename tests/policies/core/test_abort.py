"""An abort ends a request wherever it stands, frees what it holds, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from llmsim.policies.core.records import Status
from llmsim.policies.core.sequence import State
from llmsim.tests.support.driven_core import VLLM, DrivenCore, core_of, request_of

NUM_BLOCKS = 9
IN_FIGHT = {"num_blocks": NUM_BLOCKS, "block_size": 2}
"""Blocks for two small requests, not for two that have grown."""


def waiting(depth: int) -> DrivenCore:
    """`b` waits for a slot."""
    driven = DrivenCore(core_of(**IN_FIGHT, depth=depth, max_num_seqs=1))
    for name in "ab":
        driven.add(request_of(name, 4, 6), 0)
    driven.step(0)
    assert driven.core.sequences["b"].state is State.WAITING
    return driven


def prefilling(depth: int) -> DrivenCore:
    """`b` has computed a part of its prompt."""
    specs = VLLM | {"chunk_size": {"name": "fixed", "tokens": 6}}
    driven = DrivenCore(core_of(specs, **IN_FIGHT, depth=depth))
    for name in "ab":
        driven.add(request_of(name, 4, 6), 0)
    driven.step(0)
    b = driven.core.sequences["b"]
    assert (b.is_prefilling, b.computed, b.in_batch) == (True, 2, False)
    return driven


def decoding(depth: int) -> DrivenCore:
    """`b` is in the decode batch; with depth 2 its token is in flight."""
    driven = DrivenCore(core_of(**IN_FIGHT, depth=depth))
    for name in "ab":
        driven.add(request_of(name, 4, 6), 0)
    driven.step(0)
    driven.step(10)
    assert driven.core.sequences["b"].in_batch
    assert len(driven.pipe) == depth - 1
    return driven


def planned(depth: int) -> DrivenCore:
    """`b` is in the decode batch, and as many plans as there may be hold a token for it."""
    driven = decoding(depth)
    driven.plan(20)
    assert [list(flight.given) for flight in driven.pipe] == [["a", "b"]] * depth
    return driven


def preempted(depth: int) -> DrivenCore:
    """`b` gave way to `a`; with depth 2 its token is in flight."""
    driven = DrivenCore(core_of(**IN_FIGHT | {"num_blocks": 7}, depth=depth))
    for name in "ab":
        driven.add(request_of(name, 4, 6), 0)
    now_ns = 0
    while driven.core.sequences["b"].state is not State.PREEMPTED:
        driven.plan(now_ns)
        if len(driven.pipe) == depth and driven.core.sequences["b"].state is not State.PREEMPTED:
            driven.commit(now_ns)
        now_ns += 10
    assert len(driven.pipe) == depth
    return driven


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("place", [waiting, prefilling, decoding, planned, preempted])
def test_an_abort_in_any_state_frees_all_and_the_rest_goes_on(place: Callable[[int], DrivenCore], depth: int) -> None:
    driven = place(depth)
    core = driven.core
    record = driven.abort("b", 500)
    assert record is not None
    assert (record.status, record.output_tokens) == (Status.ABORTED, driven.accounts["b"].num_outputs)
    assert "b" not in core.sequences
    assert core.num_free_blocks == core.config.num_blocks - 1 - len(core.kv_cache.block_table(core.sequences["a"]))
    core.check_integrity()
    num_planned = len(driven.flights)
    driven.run(500)
    assert all("b" not in flight.given for flight in driven.flights[num_planned:])
    assert record.output_tokens == driven.accounts["b"].num_outputs
    assert driven.accounts["a"].record.output_tokens == 6
    assert core.num_free_blocks == core.config.num_blocks - 1


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("place", [waiting, prefilling, decoding, planned, preempted])
def test_all_can_be_aborted_at_once(place: Callable[[int], DrivenCore], depth: int) -> None:
    driven = place(depth)
    for name in "ab":
        driven.abort(name, 500)
    assert driven.core.num_free_blocks == driven.core.config.num_blocks - 1
    assert driven.plan(500) is None if len(driven.pipe) < depth else True
    while driven.pipe:
        assert driven.commit(510).finished == []
    driven.add(request_of("c", 4, 6), 520)
    driven.run(520)
    assert driven.accounts["c"].record.output_tokens == 6


def test_those_behind_an_aborted_request_are_served_as_if_it_had_never_waited() -> None:
    with_it, without = (DrivenCore(core_of(num_blocks=40, block_size=2, max_num_seqs=1)) for _ in range(2))
    for driven, names in ((with_it, "abc"), (without, "ac")):
        for name in names:
            driven.add(request_of(name, 4, 6), 0)
    for driven in (with_it, without):
        driven.step(0)
    with_it.abort("b", 5)
    for driven in (with_it, without):
        driven.run(10)
    assert [flight.given for flight in with_it.flights] == [flight.given for flight in without.flights]
    assert with_it.accounts["c"].times_ns == without.accounts["c"].times_ns


def test_what_an_aborted_request_computed_can_be_hit() -> None:
    driven = DrivenCore(core_of(num_blocks=40, block_size=2))
    driven.add(request_of("a", 8, 6), 0)
    driven.step(0)
    driven.abort("a", 5)
    record = driven.add(replace(request_of("a", 8, 6), id="b"), 10)
    driven.run(10)
    assert record.cached_tokens == 6


def test_an_abort_of_who_has_ended_does_nothing() -> None:
    driven = DrivenCore(core_of(num_blocks=40))
    driven.add(request_of("a", 4, 2), 0)
    driven.run()
    assert driven.core.abort("a", 100) is None
    assert driven.core.abort("never seen", 100) is None
    assert driven.accounts["a"].record.status is Status.FINISHED
