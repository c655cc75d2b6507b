"""`llmsim workload`: what a scenario's traffic is like, before any engine has seen it."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..sim.columns import NS_PER_S, Floats, Ints
from ..sim.percentiles import PERCENTILES, distribution, weighted_percentiles
from .assembly import Assembly
from .offered import offered
from .prefix_sharing import PrefixSharing, hit_rates
from .workloads.building import build_workload

NUM_CAPACITIES = 60


@dataclass(frozen=True, slots=True)
class Traffic:
    """What was seen of a workload; refused requests are counted and left out of all else."""

    name: str
    block_tokens: int
    num_refused: int
    num_following: int
    """Requests that follow from the end of others: they come sooner here than in a run."""
    times_s: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    num_hitting: int
    """Requests that find a block, in a cache without end."""
    sharing: PrefixSharing
    distances: Ints
    """Of blocks that are found: how large an LRU cache has to be for that, in blocks; rising."""
    found: Ints
    """How many blocks have that distance."""

    def capacities(self) -> Ints:
        """Cache sizes for a curve, in blocks, evenly on a log scale."""
        largest = int(self.distances[-1]) if len(self.distances) else 1
        return np.unique(np.geomspace(1, largest, NUM_CAPACITIES).round().astype(np.int64))

    def hit_rates(self, capacities: Ints) -> Floats:
        """The share of blocks that an LRU cache of each size finds."""
        return hit_rates(self.distances, self.found, self.sharing.num_blocks(), capacities)


def observe(assembly: Assembly, warn: Callable[[str], None]) -> Traffic:
    """Go through the scenario's workload once, each request served at once. Raises ScenarioError for a bad trace."""
    sharing = PrefixSharing(assembly.config.block_size)
    times, prompts, outputs = array("q"), array("q"), array("q")
    num_refused = num_following = num_hitting = 0
    for arrival, follows in offered(build_workload(assembly.scenario, warn)):
        if arrival.refusal is not None:
            num_refused += 1
            continue
        num_following += follows
        times.append(arrival.time_ns)
        prompts.append(arrival.request.prompt.num_tokens)
        outputs.append(arrival.output.length)
        before = sharing.hit_tokens
        sharing.add(arrival.request, arrival.output.length)
        num_hitting += sharing.hit_tokens > before
    distances, found = sharing.reuse_distances()
    order = np.argsort(distances, kind="stable")
    return Traffic(
        name=assembly.scenario.name,
        block_tokens=assembly.config.block_size,
        num_refused=num_refused,
        num_following=num_following,
        times_s=np.array(times, dtype=np.int64) / NS_PER_S,
        prompt_tokens=np.array(prompts, dtype=np.int64),
        output_tokens=np.array(outputs, dtype=np.int64),
        num_hitting=num_hitting,
        sharing=sharing,
        distances=distances[order],
        found=found[order],
    )


def traffic_report(traffic: Traffic) -> dict[str, Any]:
    """The figures as JSON; None where there is nothing to tell.

    rate             (requests - 1) / (last - first arrival)
    arrival_cv       standard deviation over mean of the gaps between arrivals: 1 for Poisson, more where they burst
    ideal_hit_rate   of prompt tokens, in a cache without end: full blocks alone, never a prompt's last token
    block_hit_rate   of blocks, likewise, a last block that is not full counted as one (as traces publish it)
    reuse_distance_blocks  of the blocks found: distinct blocks touched since, and itself; an LRU cache of that size
                     finds it
    """
    sharing, num = traffic.sharing, len(traffic.times_s)
    num_blocks = sharing.num_blocks()
    return {
        "scenario": traffic.name,
        "num_requests": num,
        "num_refused": traffic.num_refused,
        "num_following": traffic.num_following,
        **_arrivals(traffic.times_s),
        "prompt_tokens": distribution(traffic.prompt_tokens.astype(np.float64)),
        "output_tokens": distribution(traffic.output_tokens.astype(np.float64)),
        "total_prompt_tokens": int(traffic.prompt_tokens.sum()),
        "total_output_tokens": int(traffic.output_tokens.sum()),
        "block_tokens": traffic.block_tokens,
        "shared_prefix_share": traffic.num_hitting / num if num else None,
        "ideal_hit_rate": sharing.hit_tokens / sharing.num_tokens if num else None,
        "block_hit_rate": int(traffic.found.sum()) / num_blocks if num else None,
        "reuse_distance_blocks": _distances(traffic),
        "lru_hit_rate_by_blocks": _curve(traffic),
    }


def _arrivals(times_s: Floats) -> dict[str, float | None]:
    gaps_s = np.diff(np.sort(times_s))
    duration_s = float(gaps_s.sum())
    mean_s = duration_s / len(gaps_s) if len(gaps_s) else 0.0
    return {
        "duration_s": duration_s,
        "rate": 1 / mean_s if mean_s else None,
        "arrival_cv": float(gaps_s.std() / mean_s) if mean_s else None,
    }


def _distances(traffic: Traffic) -> dict[str, float | None]:
    names = [f"p{percentage}" for percentage in PERCENTILES]
    if not len(traffic.distances):
        return dict.fromkeys(names)
    return dict(zip(names, weighted_percentiles(traffic.distances, traffic.found), strict=True))


def _curve(traffic: Traffic) -> list[list[float]]:
    capacities = traffic.capacities()
    return [[int(size), float(rate)] for size, rate in zip(capacities, traffic.hit_rates(capacities), strict=True)]
