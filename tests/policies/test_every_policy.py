"""Every policy with every other: nobody is lost, budgets hold, all is served; none knows of a simulator or tensors."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations as subsets
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

import llmsim.policies
from llmsim.policies import registry
from llmsim.policies.conformance import FEATURES, complaint, requirements
from llmsim.policies.core.config import PrefixIndex
from llmsim.policies.core.records import Status
from llmsim.policies.core.request import Request
from llmsim.tests.support.driven_core import DrivenCore, Flight, core_of
from llmsim.tests.support.linear_estimator import LinearEstimator
from llmsim.tests.support.traffic import drive, random_requests, random_stops

NEEDED: dict[str, dict[str, Any]] = {
    "fixed": {"tokens": 9},
    "threshold": {"tokens": 5},
    "weighted": {"decode_weight": 6, "least_tokens": 4},
    "itl_target": {"itl_s": 4e-7, "least_tokens": 4},
}
"""Parameters that must be given; for the others their defaults will do."""


KNOWN = {kind: registry.policies(kind) for kind in registry.KINDS}


def spec_of(kind: str, name: str) -> dict[str, Any]:
    """A policy with what it must be given."""
    taken = registry.parameters(registry.policies(kind)[name]).values()
    missing = [parameter.name for parameter in taken if parameter.default is parameter.empty]
    assert set(missing) <= set(NEEDED.get(name, {})), f"say in NEEDED what {name} must be given"
    return {"name": name, **NEEDED.get(name, {})}


def prefix_index(batching: str) -> PrefixIndex:
    """What the engine has with this batching policy."""
    return getattr(KNOWN["batching"][batching], "prefix_index", "hashed_blocks")


def fits(chosen: dict[str, str]) -> bool:
    """Whether each of the policies has what it requires; the requests carry all that one may require."""
    needs = [need for kind, name in chosen.items() for need in requirements(KNOWN[kind][name])]
    others = [need.partition(".") for need in needs if need not in FEATURES]
    is_prefill_first = chosen["batching"] == "prefill_first"  # it does not mix, and has the tree
    amiss = "mixed_steps" if is_prefill_first else "radix_tree"
    return all(chosen[kind] == name for kind, _, name in others) and amiss not in needs


def combinations() -> Iterator[dict[str, str]]:
    """One policy a kind, in every combination that is valid."""
    for names in product(*KNOWN.values()):
        chosen = dict(zip(registry.KINDS, names, strict=True))
        if fits(chosen):
            yield chosen


def some_combinations() -> Iterator[dict[str, str]]:
    """As few of them as show each policy with each of another kind."""
    seen: set[tuple[tuple[str, str], ...]] = set()
    for chosen in combinations():
        pairs = set(subsets(chosen.items(), 2))
        if pairs - seen:
            seen |= pairs
            yield chosen


class WatchedCore(DrivenCore):
    """Looks at every plan."""

    def plan(self, now_ns: int) -> Flight | None:
        flight = super().plan(now_ns)
        if flight is not None:
            core, plan = self.core, flight.plan
            assert plan.num_tokens == sum(flight.given.values()) <= core.config.max_num_batched_tokens
            assert plan.num_running <= core.config.max_num_seqs
            for sequence in plan.aborted:
                self.accounts[sequence.id].is_alive = False
            alive = {name for name, account in self.accounts.items() if account.is_alive}
            assert alive <= {s.id for s in core.running.values()} | {s.id for s in core.waiting}
        return flight


def told(random: Random, requests: list[Request]) -> list[Request]:
    """The requests with all that a policy may require."""
    return [
        replace(
            request,
            tenant=random.choice("xyz"),
            deadline_ns=request.arrival_ns + random.randint(1, 500),
            predicted_tokens=random.randint(1, 30),
        )
        for request in requests
    ]


def test_all_are_served_under_every_pair_of_policies() -> None:
    run_under(some_combinations(), num_requests=9)


@pytest.mark.slow
def test_all_are_served_under_every_combination() -> None:
    run_under(combinations(), num_requests=6)


def run_under(combined: Iterable[dict[str, str]], num_requests: int) -> None:
    """Tight traffic under each, with one plan in flight and with two in turn."""
    ends, num_preempted, num_evicted = set(), 0, 0
    for seed, chosen in enumerate(combined):
        random = Random(seed)
        specs = {kind: spec_of(kind, name) for kind, name in chosen.items()}
        limits: dict[str, Any] = {"num_blocks": random.choice((14, 22)), "block_size": random.choice((2, 4))}
        limits |= {"max_num_seqs": random.choice((2, 5)), "max_num_batched_tokens": random.choice((8, 40))}
        requests = told(random, random_requests(random, num_requests))
        limits |= {"depth": 1 + seed % 2, "prefix_index": prefix_index(chosen["batching"])}
        core = core_of(specs, estimator=LinearEstimator(), **limits)
        driven = WatchedCore(core, random_stops(random, requests))
        try:
            drive(driven, requests, random, abort_chance=0.01)
            core.check_integrity()
        except AssertionError as error:
            raise AssertionError(f"under {', '.join(chosen.values())}") from error
        statuses = {account.record.status for account in driven.accounts.values()}
        assert statuses <= {Status.FINISHED, Status.REFUSED, Status.ABORTED}, chosen
        assert not core.sequences, chosen
        ends |= statuses
        num_preempted += sum(account.record.num_preemptions for account in driven.accounts.values())
        num_evicted += core.kv_cache.pool.num_evicted
    assert ends == {Status.FINISHED, Status.REFUSED, Status.ABORTED}
    assert min(num_preempted, num_evicted) > 10


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_policy_of_the_house_keeps_the_protocol_of_its_kind(kind: str) -> None:
    assert {name: wrong for name, policy in registry.policies(kind).items() if (wrong := complaint(kind, policy))} == {}


@pytest.mark.parametrize("kind", [kind for kind in registry.KINDS if kind != "batching"])
def test_every_policy_stands_in_a_file_of_its_own_of_under_120_lines(kind: str) -> None:
    modules = [policy.__module__ for policy in registry.policies(kind).values()]
    shipped = [name for name in modules if name.startswith("llmsim.policies.")]  # other tests may register their own
    files = [Path(sys.modules[name].__file__ or "") for name in shipped]
    assert len(set(files)) == len(files)
    assert {file.parent.name for file in files} == {kind}
    lengths = {file.name: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert {name: length for name, length in lengths.items() if length >= 120} == {}


def test_no_policy_imports_a_simulator_an_engine_or_tensors() -> None:
    ground = Path(llmsim.policies.__file__).parent
    forbidden = {"sim", "real_engine", "scenarios", "calibrate", "cli", "kernels", "simpy", "torch", "triton"}
    for file in ground.rglob("*.py"):
        depth = len(file.relative_to(ground).parts)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level <= depth, f"{file} reaches out of the ground"
                names = [] if node.level else [node.module or ""]
            assert not forbidden.intersection(name.partition(".")[0] for name in names), file
            assert not [name for name in names if name.startswith("llmsim")], file
