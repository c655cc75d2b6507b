"""Each eviction policy orders entries as it says, and checks its parameters."""

from __future__ import annotations

from statistics import correlation, mean
from typing import Any

import pytest

from llmsim.policies import registry
from llmsim.policies.core.evictable_heap import CachedBlock
from llmsim.policies.protocols import EvictionPolicy

NAMES = list(registry.policies("eviction"))


def policy(name: str, **parameters: Any) -> EvictionPolicy:
    made: EvictionPolicy = registry.create("eviction", {"name": name} | parameters)
    return made


def entry(**differing: int) -> CachedBlock:
    plain = {"created": 10, "last_used": 20, "hits": 1, "priority": 0, "num_tokens": 16, "depth_tokens": 160}
    return CachedBlock(**(plain | differing))


@pytest.mark.parametrize(
    ("name", "goes", "stays"),
    [
        ("lru", {"last_used": 20, "hits": 9}, {"last_used": 21}),
        ("mru", {"last_used": 21}, {"last_used": 20}),
        ("fifo", {"created": 10, "last_used": 99}, {"created": 11}),
        ("filo", {"created": 11, "last_used": 99}, {"created": 10}),
        ("lfu", {"hits": 1, "last_used": 99}, {"hits": 2, "last_used": 20}),
        ("lfu", {"last_used": 20}, {"last_used": 21}),
        ("slru", {"hits": 1, "last_used": 99}, {"hits": 2, "last_used": 20}),
        ("slru", {"hits": 9, "last_used": 20}, {"hits": 2, "last_used": 21}),
        ("slru", {"hits": 1, "last_used": 20}, {"hits": 1, "last_used": 21}),
        ("priority", {"priority": -1, "last_used": 99}, {"priority": 0, "last_used": 20}),
        ("priority", {"last_used": 20}, {"last_used": 21}),
        ("length_aware", {"hits": 1, "depth_tokens": 0}, {"hits": 2, "depth_tokens": 999}),
        ("length_aware", {"depth_tokens": 176}, {"depth_tokens": 160}),
        ("cost_aware", {"last_used": 20}, {"last_used": 21}),
        ("cost_aware", {"hits": 1}, {"hits": 2}),
        ("cost_aware", {"depth_tokens": 0}, {"depth_tokens": 30_600}),
    ],
)
def test_what_goes_has_the_smaller_rank(name: str, goes: dict[str, int], stays: dict[str, int]) -> None:
    chosen = policy(name)
    assert chosen.rank(entry(**goes)) < chosen.rank(entry(**stays))


def test_protection_begins_with_the_threshold() -> None:
    strict = policy("slru", threshold=4)
    assert strict.rank(entry(hits=3, last_used=99)) < strict.rank(entry(hits=4))
    assert strict.rank(entry(hits=3)) == strict.rank(entry(hits=1))


def test_half_a_life_unused_is_worth_half_the_hits() -> None:
    chosen = policy("cost_aware", half_life=100)
    assert chosen.rank(entry(hits=4, last_used=500)) == pytest.approx(chosen.rank(entry(hits=2, last_used=600)))


def test_a_token_costs_twice_as_much_where_attention_equals_the_linear_layers() -> None:
    chosen = policy("cost_aware", linear_tokens=1000)
    at_0, at_1000 = entry(depth_tokens=0, num_tokens=0), entry(depth_tokens=1000, num_tokens=0)
    assert chosen.rank(at_1000) == pytest.approx(chosen.rank(at_0._replace(hits=2)))


def test_lots_are_exponential_and_belong_to_what_entered_together() -> None:
    chosen, same, other = policy("random", lifetime=50), policy("random", lifetime=50), policy("random", seed=1)
    lots = [float(chosen.rank(entry(created=i))) - i for i in range(4000)]  # type: ignore[arg-type]
    assert lots[::-1] == [float(same.rank(entry(created=i, hits=3))) - i for i in reversed(range(4000))]  # type: ignore[arg-type]
    others = [float(other.rank(entry(created=i))) - i for i in range(4000)]  # type: ignore[arg-type]
    assert mean(lots) == pytest.approx(50, rel=0.05)
    assert mean(lot > 50 for lot in lots) == pytest.approx(0.368, abs=0.025)
    assert abs(correlation(lots, others)) < 0.05
    assert abs(correlation(lots[1:], lots[:-1])) < 0.05


@pytest.mark.parametrize("name", NAMES)
def test_a_rank_depends_on_the_entry_alone(name: str) -> None:
    entries = [entry(created=i, last_used=2 * i, hits=i % 4, depth_tokens=16 * (i % 7)) for i in range(1, 50)]
    first, second = policy(name), policy(name)
    assert [first.rank(e) for e in entries] == [second.rank(e) for e in reversed(entries)][::-1]


@pytest.mark.parametrize(
    ("name", "parameter", "value", "least"),
    [
        ("slru", "threshold", 0, "at least 1"),
        ("cost_aware", "half_life", 0, "above 0"),
        ("cost_aware", "linear_tokens", -1, "above 0"),
        ("random", "lifetime", 0, "above 0"),
    ],
)
def test_a_parameter_out_of_range_is_told(name: str, parameter: str, value: float, least: str) -> None:
    with pytest.raises(registry.PolicyError, match=f"{value} is out of range; {least}") as caught:
        policy(name, **{parameter: value})
    assert caught.value.key == parameter
