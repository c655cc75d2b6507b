"""What a cache would find is what a plain set, and a plain LRU list, of blocks finds."""

from __future__ import annotations

import random
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from llmsim.policies.core.request import Prompt, Request
from llmsim.scenarios.offered import offered
from llmsim.scenarios.prefix_sharing import PrefixSharing, hit_rates
from llmsim.scenarios.schema_workload import TraceSettings
from llmsim.scenarios.workloads.building import play_trace
from llmsim.tests.support.shared import shared

Spans = list[tuple[int, int, int]]


def request(index: int, spans: Spans) -> Request:
    return Request(f"r{index}", 0, Prompt(spans), 1, -(index + 1))


def random_traffic(seed: int, num: int, whole: bool) -> list[Spans]:
    """Paths in a random tree; with `whole`, all spans are blocks of 4 tokens."""
    draw = random.Random(seed)
    paths: list[Spans] = [[]]
    for index in range(num):
        stem = draw.choice(paths)
        stem = stem[: draw.randint(0, len(stem))]
        fresh = [(1000 * index + place, 0, 4 if whole else draw.randint(1, 9)) for place in range(draw.randint(1, 4))]
        paths.append(stem + fresh)
    return paths[1:]


def tokens(spans: Spans) -> list[tuple[int, int]]:
    return [(content, start + place) for content, start, length in spans for place in range(length)]


@pytest.mark.parametrize("seed", range(20))
def test_ideal_hits_are_those_of_a_set_of_token_prefixes(seed: int) -> None:
    sharing, seen, expected = PrefixSharing(4), set(), 0
    for index, spans in enumerate(random_traffic(seed, 60, whole=False)):
        sharing.add(request(index, spans), 3)
        flat = tokens(spans)
        common = next((n for n in range(len(flat), 0, -1) if tuple(flat[:n]) in seen), 0)
        expected += min(common, len(flat) - 1) // 4 * 4
        generated = flat + [(-(index + 1), place) for place in range(3)]
        seen.update(tuple(generated[:n]) for n in range(len(generated) + 1))
    assert sharing.hit_tokens == expected
    assert expected > 0


@pytest.mark.parametrize("seed", range(20))
def test_reuse_distances_are_the_sizes_from_which_a_plain_lru_list_hits(seed: int) -> None:
    traffic = random_traffic(seed, 80, whole=True)
    sharing = PrefixSharing(4)
    for index, spans in enumerate(traffic):
        sharing.add(request(index, spans), 3)
    distances, found = sharing.reuse_distances()
    capacities = np.array([0, 1, 2, 3, 5, 8, 13, 21, 34, 1000])
    rates = hit_rates(distances, found, sharing.num_blocks(), capacities)
    for capacity, rate in zip(capacities, rates, strict=True):
        cache: OrderedDict[object, None] = OrderedDict()
        hits = 0
        for spans in traffic:
            keys = [tuple(spans[: place + 1]) for place in range(len(spans))]
            hits += next((place for place, key in enumerate(keys) if key not in cache), len(keys))
            for key in reversed(keys):
                cache[key] = None
                cache.move_to_end(key)
            while len(cache) > capacity:
                cache.popitem(last=False)
        assert rate == pytest.approx(hits / sum(map(len, traffic)))


def test_a_next_turn_finds_what_the_last_one_left_but_for_its_last_token() -> None:
    sharing = PrefixSharing(4)
    sharing.add(request(0, [(1, 0, 8)]), 8)
    sharing.add(request(1, [(1, 0, 8), (-1, 0, 8)]), 1)
    assert sharing.hit_tokens == 12  # of 16, the last one must be computed, and with it its block
    sharing.add(request(2, [(1, 0, 8), (-1, 0, 8), (2, 0, 1)]), 1)
    assert sharing.hit_tokens == 12 + 16


@pytest.mark.parametrize(
    ("name", "ideal", "lru"),
    [
        ("conversation", 0.366, [0.0445, 0.1361, 0.2116, 0.3257, 0.3546, 0.3637]),
        ("synthetic", 0.640, [0.0841, 0.3094, 0.4239, 0.6242, 0.6396, 0.6396]),
    ],
)
def test_mooncake_traces_have_the_hit_rates_that_are_known(name: str, ideal: float, lru: list[float]) -> None:
    settings = TraceSettings(type="trace", path="x", format="mooncake")
    path: Path = shared("traces", "mooncake", f"{name}_trace.jsonl.gz")
    sharing = PrefixSharing(512)
    for arrival, follows in offered(play_trace(settings, path, 0, pytest.fail)):
        sharing.add(arrival.request, arrival.output.length)
        assert not follows
    distances, found = sharing.reuse_distances()
    assert found.sum() / sharing.num_blocks() == pytest.approx(ideal, abs=5e-4)
    capacities = np.array([1000, 5859, 10_000, 30_000, 50_000, 100_000])
    rates = hit_rates(distances, found, sharing.num_blocks(), capacities)
    assert rates == pytest.approx(lru, abs=6e-5)
