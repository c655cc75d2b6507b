"""The policy that CONTRIBUTING.md shows is the one that is tested here, and does what it says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from llmsim.policies import registry
from llmsim.policies.core.records import Status
from llmsim.policies.registry import KINDS, PolicyError, policies
from llmsim.tests.support.driven_core import VLLM, DrivenCore, core_of, request_of
from llmsim.tests.support.traffic import drive, random_core, random_requests
from llmsim.tests.support.tree import ROOT

EXAMPLE = Path(__file__).with_name("example_policy.py")
SHORTEST: dict[str, dict[str, Any]] = VLLM | {"scheduling": {"name": "shortest_prompt"}}


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example is known while a test runs, and forgotten after it."""
    for kind in KINDS:
        policies(kind)
    monkeypatch.setattr(registry, "_classes", {kind: dict(known) for kind, known in registry._classes.items()})
    spec = importlib.util.spec_from_file_location("example_policy", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def admissions(specs: dict[str, dict[str, Any]], prompts: dict[str, tuple[int, int]]) -> list[str]:
    """Who was admitted when; requests are told as (prompt tokens, time of arrival)."""
    driven = DrivenCore(core_of(specs, num_blocks=99, max_num_seqs=1))
    for name, (num_prompt, arrival_ns) in prompts.items():
        driven.add(request_of(name, num_prompt, 2, arrival_ns=arrival_ns), 100)
    driven.run(100)
    return [a.sequence.id for flight in driven.flights for a in flight.plan.admitted]


def test_contributing_shows_this_very_policy() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("## Add a policy in 30 lines", 1)[1].split("\n## ", 1)[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert code == EXAMPLE.read_text(encoding="utf-8")
    assert len(code.splitlines()) <= 30


def test_the_shortest_prompt_is_admitted_first() -> None:
    prompts = {"a": (30, 0), "b": (8, 0), "c": (20, 0), "d": (8, 0)}
    assert admissions(SHORTEST, prompts) == ["b", "d", "c", "a"]
    assert admissions(VLLM, prompts) == ["a", "b", "c", "d"]


def test_who_has_waited_too_long_is_admitted_before_shorter_ones() -> None:
    impatient = SHORTEST | {"scheduling": {"name": "shortest_prompt", "patience_s": 50e-9}}
    prompts = {"a": (30, 0), "b": (40, 0), "c": (20, 100), "d": (8, 100)}
    assert admissions(impatient, prompts) == ["a", "b", "d", "c"]


def test_its_parameter_is_checked() -> None:
    for value, message in ((-1, "-1 is out of range; at least 0"), ("long", "'long' is not of type float")):
        with pytest.raises(PolicyError, match=message) as caught:
            core_of(SHORTEST | {"scheduling": {"name": "shortest_prompt", "patience_s": value}}, num_blocks=9)
        assert caught.value.key == "patience_s"


def test_under_any_traffic_all_are_served() -> None:
    for seed in range(30):
        random = Random(seed)
        driven = DrivenCore(random_core(random, specs={"scheduling": {"name": "shortest_prompt"}}))
        drive(driven, random_requests(random, 20), random)
        driven.core.check_integrity()
        assert {a.record.status for a in driven.accounts.values()} <= {Status.FINISHED, Status.REFUSED}
