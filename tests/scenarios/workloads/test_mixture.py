"""Mixtures: parts by weight, tenants told apart, nothing shared between them, and each part as it is alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.tests.support.generators import scenario_with, whole, workload_of


def parts(*weights: float) -> list[dict[str, Any]]:
    return [
        {"tenant": f"t{place}", "weight": weight, "workload": {"type": "rag", "corpus": 30}}
        for place, weight in enumerate(weights)
    ]


def test_parts_come_with_their_weights() -> None:
    counts = Counter(a.request.tenant for a in workload_of("mixture", parts=parts(1, 3), requests=20_000).arrivals())
    assert counts["t0"] / 20_000 == pytest.approx(0.25, abs=0.019)  # 6 standard errors
    assert counts["t0"] + counts["t1"] == 20_000


def test_parts_share_no_content_even_where_they_are_the_same() -> None:
    contents: dict[str | None, set[object]] = {}
    for arrival in whole(workload_of("mixture", parts=parts(1, 1, 1))):
        contents.setdefault(arrival.request.tenant, set()).update(arrival.request.prompt.contents)
    assert len(contents) == 3
    assert len(set().union(*contents.values())) == sum(map(len, contents.values()))


def test_a_part_draws_the_same_whatever_the_weights() -> None:
    def of_first(*weights: float) -> list[list[int]]:
        arrivals = workload_of("mixture", parts=parts(*weights)).arrivals()
        return [[n for _, _, n in a.request.prompt.spans()] for a in arrivals if a.request.tenant == "t0"]

    few, many = of_first(1, 5), of_first(5, 1)
    assert 10 < len(few) < len(many)
    assert many[: len(few)] == few


def test_tenants_of_a_part_keep_their_names_behind_its_own() -> None:
    tenants = {a.request.tenant for a in workload_of("mixture").arrivals()}
    assert tenants == {"chat", "code/tenant-0", "code/tenant-1", "search"}


def test_sessions_of_a_part_go_on() -> None:
    turns = Counter(a.request.session for a in whole(workload_of("mixture")) if a.request.tenant == "chat")
    assert max(turns.values()) > 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], "workload.parts: "),
        ([{"tenant": "a"}], "workload.parts.0.workload: is required"),
        ([{"workload": {"type": "rag"}}], "workload.parts.0.tenant: is required"),
        ({}, "workload.parts: must be a list, not {}"),
        (
            [{"tenant": "a", "workload": {}}],
            "workload.parts.0.workload.type: is required; choose agent, few_shot, generated_shared_prefix, "
            "independent, multi_turn, prefix_reuse, rag",
        ),
        (parts(0), "workload.parts.0.weight: 0 is out of range: must be above 0"),
        (parts(1, -1), "workload.parts.1.weight: -1 is out of range"),
        ([*parts(1), *parts(1)], "workload: parts: tenant 't0' stands twice"),
        ([{"tenant": "a", "workload": {"type": "mixture"}}], "workload.parts.0.workload.type: 'mixture' is unknown"),
        ([{"tenant": "a", "workload": {"type": "rag", "rate": 3}}], "workload.parts.0: workload.rate is the mixture's"),
        ([{"tenant": "a", "workload": {"type": "rag", "corpus": 0}}], "workload.parts.0.workload.corpus: 0 is out of"),
        ([{"tenant": "a", "workload": {"type": "rag", "corp": 1}}], "workload.parts.0.workload.corp: unknown key"),
    ],
)
def test_an_impossible_mixture_is_one_line(wrong: Any, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario_with("mixture", parts=wrong)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
