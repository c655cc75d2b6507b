"""What plans tell of block tables is what the core holds, and whoever follows it finds each sequence's own content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.records import EventKind
from llmsim.scenarios.log_comparison import first_difference
from llmsim.scenarios.sglang_decisions import SglangDecisions
from llmsim.tests.support.driven_core import BY_PRIORITY, VLLM, DrivenCore, core_of, request_of
from llmsim.tests.support.golden import golden_case, golden_names
from llmsim.tests.support.mirror import MirroredCore
from llmsim.tests.support.sglang_cases import random_case
from llmsim.tests.support.swapping import SWAPPING
from llmsim.tests.support.traffic import drive, random_requests, random_stops

NUM_SEEDS = 8
Seeded = Callable[[Random], EngineCore]


def hashed(specs: dict[str, dict[str, Any]], **limits: Any) -> Seeded:
    """Cores on hashed blocks, or on ranges, whose memory is short for what runs."""

    def core(random: Random) -> EngineCore:
        size = random.choice((1, 2, 4, 16))
        num_blocks = 1 + -(-random.choice((90, 110, 130)) // size)
        return core_of(
            specs,
            **{"enable_prefix_caching": random.random() < 0.8, "num_blocks": num_blocks, "block_size": size}
            | {"max_num_batched_tokens": random.choice((40, 400)), "reserve_full_prompt": random.random() < 0.5}
            | limits,
        )

    return core


def radix(page: int, **limits: Any) -> Seeded:
    """Cores on a radix tree with pages of so many tokens, memory short again."""

    def core(random: Random) -> EngineCore:
        batching = {
            "name": "prefill_first",
            "conservativeness": random.choice((0.0, 0.0, 0.3)),
            "mixed_chunk": random.random() < 0.3,
            "chunked_prefill_size": random.choice((None, page + 2, page + 10)),
            "preempts_by_priority": (by_priority := random.random() < 0.3),
        }
        specs = VLLM | {
            "batching": batching,
            "scheduling": {"name": "priority" if by_priority else random.choice(("fcfs", "lpm"))},
            "preemption": {"name": "fewest_outputs"},
            "eviction": {"name": random.choice(("lru", "lfu"))},
        }
        return core_of(
            specs,
            **{"num_blocks": random.choice((90, 110, 190)) // page + 2, "block_size": page, "spare_tokens": page}
            | {"prefix_index": "radix_tree", "max_num_seqs": random.choice((3, 8, 64)), "max_num_batched_tokens": 9999}
            | {"asks_generously": random.random() < 0.5, "enable_prefix_caching": random.random() < 0.9}
            | limits,
        )

    return core


def looked_at(driven: DrivenCore) -> Callable[[int], None]:
    """What looks at the core's integrity before every few steps."""

    def look(_: int) -> None:
        if driven.core.num_steps % 8 == 0:
            driven.core.check_integrity()

    return look


def mirrored_run(seed: int, cores: Seeded) -> DrivenCore:
    """A random run of a mirrored core, checked at each plan; a core that tells nothing must decide the same."""
    both = []
    for is_mirrored in (True, False):
        random = Random(seed)
        core = cores(random)
        coming = random_requests(random, 25)
        requests = [replace(r, priority=11 * r.priority, arrival_ns=r.arrival_ns // 4) for r in coming]
        accepts = {r.id: [random.randint(0, 3) for _ in range(3)] for r in requests}
        driven = DrivenCore(MirroredCore(core) if is_mirrored else core, random_stops(random, requests), accepts)
        drive(driven, requests, random, looked_at(driven), abort_chance=random.choice((0.0, 0.0, 0.03)))
        driven.core.check_integrity()
        assert driven.core.num_free_blocks == core.config.num_blocks - 1
        both.append(driven)
    mirrored, plain = both
    assert [f.plan.digest() for f in mirrored.flights] == [f.plan.digest() for f in plain.flights]
    assert not any(flight.plan.grants for flight in plain.flights)
    return mirrored


WARM = {"num_blocks": 500, "enable_prefix_caching": True}
KINDS: dict[str, Seeded] = {
    "blocks": hashed(VLLM),
    "blocks, two plans in flight": hashed(VLLM, depth=2),
    "blocks by priority": hashed(BY_PRIORITY),
    "blocks, the fewest outputs give way": hashed(VLLM | {"preemption": {"name": "fewest_outputs"}}, depth=2),
    "blocks with drafts": hashed(VLLM, num_speculative_tokens=3, num_blocks=100, max_num_batched_tokens=40),
    "swaps": hashed(SWAPPING, num_host_blocks=40),
    "swaps, two plans in flight": hashed(SWAPPING, num_host_blocks=40, depth=2),
    "ranges": hashed(VLLM, kv_reservation="contiguous", enable_prefix_caching=False),
    "pages of 1": radix(1),
    "pages of 1, two plans in flight": radix(1, depth=2),
    "pages of 4": radix(4),
    "pages of 4, two plans in flight": radix(4, depth=2),
    "pages of 16, two plans in flight": radix(16, depth=2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_the_cores_tables_and_lead_to_ones_own_content(kind: str) -> None:
    num_preempted = num_anew = num_hits = num_swapped = most_shared = 0
    for seed in range(NUM_SEEDS):
        driven = mirrored_run(seed, KINDS[kind])
        assert isinstance(driven.core, MirroredCore)
        num_anew += driven.core.device.num_pointed_anew
        most_shared = max(most_shared, driven.core.device.most_shared)
        for flight in driven.flights:
            num_preempted += len(flight.plan.preempted)
            num_hits += sum(admission.num_cached_tokens > 0 for admission in flight.plan.admitted)
            num_swapped += sum(swap.kind is EventKind.SWAP_IN for swap in flight.plan.swaps)
    assert (num_preempted > 0) == (kind != "ranges")
    assert (num_hits > 20) == (kind != "ranges")
    assert (most_shared > 1) == (kind != "ranges")
    assert (num_swapped > 10) == kind.startswith("swaps")
    if "16" not in kind:  # where duplicates are rare
        assert (num_anew > 0) == kind.startswith("pages")


class MirroredDecisions(SglangDecisions):
    """A case of SGLang's on a mirrored core."""

    def __init__(self, case: dict[str, Any]) -> None:
        super().__init__(case)
        self.core: MirroredCore = MirroredCore(self.core)


class NumberedDecisions(SglangDecisions):
    """A case of SGLang's on a core that tells grants to nobody."""

    def __init__(self, case: dict[str, Any]) -> None:
        super().__init__(case)
        self.core = EngineCore(self.core.config, self.core.policies, tells_grants=True)


def lines(decisions: SglangDecisions) -> list[dict[str, Any]]:
    """The log, up to the chunk at which memory may end it."""
    told = []
    try:
        for number, line in enumerate(decisions.log()):
            told.append(line)
            if number % 50 == 0:
                decisions.core.check_integrity()
    except ValueError as error:
        told.append({"error": str(error)})
    return told


def test_numbered_pages_change_no_decision_of_random_cases() -> None:
    num_anew = 0
    for seed in range(24):
        case = random_case(seed)
        decisions = MirroredDecisions(case)
        assert lines(decisions) == lines(SglangDecisions(case)), seed
        num_anew += decisions.core.device.num_pointed_anew
    assert num_anew > 20


@pytest.mark.parametrize("name", golden_names("sglang")[::5])
def test_numbered_pages_change_no_decision_of_golden_cases(name: str) -> None:
    case = golden_case("sglang", name)
    assert first_difference(case["log"], lines(NumberedDecisions(case))) is None


@pytest.mark.parametrize("cores", [hashed(VLLM, **WARM), radix(4, **WARM)])
def test_a_warm_cache_is_taken_over_with_its_blocks(cores: Seeded) -> None:
    first, second = MirroredCore(cores(Random(0))), MirroredCore(cores(Random(0)))
    requests = random_requests(Random(1), 10)
    drive(DrivenCore(first), requests, Random(2))
    second.take_over_cache(first)
    second.device = first.device  # its memory goes with the cache
    driven = DrivenCore(second)
    drive(driven, [replace(request, id=f"again {request.id}") for request in requests], Random(2))
    assert driven.flights[0].plan.admitted[0].num_cached_tokens > 0
    second.check_integrity()


def test_a_cache_is_not_taken_over_where_only_one_of_two_tells_grants() -> None:
    plain = core_of(num_blocks=10)
    with pytest.raises(AssertionError, match="only one of the two tells grants"):
        plain.take_over_cache(MirroredCore(core_of(num_blocks=10)))


def test_grants_are_proportional_to_change() -> None:
    core = MirroredCore(core_of(VLLM, num_blocks=100, block_size=4))
    driven = DrivenCore(core)
    for name in "abc":
        driven.add(request_of(name, 6, 20), 0)
    driven.run()
    told = [[(g.sequence.id, g.start, len(g.blocks)) for g in f.plan.grants] for f in driven.flights[:8]]
    crossing = [[(name, start, 1) for name in "abc"] for start in (2, 3)]
    assert told == [[(name, 0, 2) for name in "abc"], [], [], crossing[0], [], [], [], crossing[1]]


def test_no_steps_are_skipped_where_grants_are_told() -> None:
    for tells_grants in (False, True):
        config_of = core_of(VLLM, num_blocks=100)
        core = EngineCore(config_of.config, config_of.policies, tells_grants=tells_grants)
        driven = DrivenCore(core)
        driven.add(request_of("a", 6, 20), 0)
        driven.step(0)
        driven.step(0)
        assert (core.steady.num_steps() > 0) == (not tells_grants)


@pytest.mark.xfail(raises=AssertionError, strict=True, reason="blocks enter when they are allocated, as in vLLM 0.33")
def test_what_gave_way_in_the_step_that_allocated_it_is_not_matched() -> None:
    """`a` is given blocks for 6 tokens, gives way to `b` in the same step, and later finds them without content."""
    core = core_of(
        BY_PRIORITY | {"chunk_size": {"name": "threshold", "tokens": 6}},
        num_blocks=18,
        block_size=2,
        max_num_batched_tokens=14,
        reserve_full_prompt=False,
    )
    driven = DrivenCore(MirroredCore(core))
    driven.add(request_of("a", 30, 2, priority=5), 0)
    driven.step(0)
    driven.add(request_of("b", 3, 3, priority=0), 0)
    driven.run()
