"""Prompts share what their generator says, in the shares that were asked for: few-shot, retrieval, prefix groups."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import numpy as np
import pytest

from llmsim.policies.core.request import Arrival
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.workloads.rag import retrieved
from llmsim.tests.support.generators import scenario_with, workload_of


def contents(arrival: Arrival) -> list[Any]:
    return [content for content, _, _ in arrival.request.prompt.spans()]


def test_documents_are_retrieved_by_zipf_each_from_those_that_are_left() -> None:
    weights = 1 / np.arange(1, 6)
    shares = weights / weights.sum()
    drawn = list(islice(retrieved(3, 5, 1.0, 2), 60_000))
    pairs = Counter((a, b) for a, b in drawn)
    assert all(a != b for a, b in pairs)
    for a in range(5):
        for b in set(range(5)) - {a}:
            wanted = shares[a] * shares[b] / (1 - shares[a])
            assert pairs[a, b] / 60_000 == pytest.approx(wanted, abs=6 * (wanted / 60_000) ** 0.5)


def test_the_steepest_zipf_still_finds_different_documents() -> None:
    (ranks,) = islice(retrieved(0, 1000, 20.0, 1000), 1)
    assert sorted(ranks) == list(range(1000))
    assert ranks[:4] == [0, 1, 2, 3]


@pytest.mark.parametrize("order", ["given", "shuffled"])
def test_a_rag_prompt_is_system_documents_question(order: str) -> None:
    for arrival in workload_of("rag", order=order, documents=3, system_tokens=11).arrivals():
        system, *documents, _ = contents(arrival)
        assert (system, arrival.request.prompt.spans()[0][2]) == (0, 11)
        assert len(set(documents)) == 3
        assert set(documents) <= set(range(1, 51))
        assert order == "shuffled" or documents == sorted(documents)


def test_the_order_of_documents_is_all_that_shuffling_changes() -> None:
    given, shuffled = (list(workload_of("rag", order=order).arrivals()) for order in ("given", "shuffled"))
    assert [sorted(contents(a)) for a in given] == [sorted(contents(a)) for a in shuffled]
    assert [contents(a) for a in given] != [contents(a) for a in shuffled]


def test_few_shot_prompts_share_instructions_and_examples_of_their_task() -> None:
    arrivals = list(workload_of("few_shot", order="given", tasks=3, examples=2, requests=6000).arrivals())
    counts = Counter(tuple(contents(a)[:3]) for a in arrivals)
    assert sorted(counts) == [(0, 3, 4), (1, 5, 6), (2, 7, 8)]
    for rank, share in enumerate(np.array([6, 3, 2]) / 11):
        assert sorted(counts.values(), reverse=True)[rank] / 6000 == pytest.approx(share, abs=0.04)


def test_shuffled_examples_come_in_every_order_equally_often() -> None:
    arrivals = workload_of("few_shot", order="shuffled", tasks=1, examples=3, requests=6000).arrivals()
    counts = Counter(tuple(contents(a)[1:4]) for a in arrivals)
    assert len(counts) == 6
    assert all(count / 6000 == pytest.approx(1 / 6, abs=0.03) for count in counts.values())


def test_a_task_can_have_no_examples() -> None:
    assert {len(contents(a)) for a in workload_of("few_shot", examples=0).arrivals()} == {2}


@pytest.mark.parametrize("order", ["shuffled", "grouped"])
def test_each_group_has_its_prompts(order: str) -> None:
    arrivals = list(workload_of("generated_shared_prefix", order=order, question_len=9).arrivals())
    groups = [contents(a)[0] for a in arrivals]
    assert Counter(groups) == dict.fromkeys(range(10), 20)
    assert (groups == sorted(groups)) == (order == "grouped")
    assert {tuple(length for _, _, length in a.request.prompt.spans()) for a in arrivals} == {(2048, 9)}
    assert {a.output.length for a in arrivals} == {256}


@pytest.mark.parametrize(
    ("kind", "wrong", "message"),
    [
        ("rag", {"documents": 51}, "workload: documents 51 is out of range: the corpus has 50"),
        ("rag", {"documents": 0}, "workload.documents: 0 is out of range"),
        ("rag", {"corpus": 10**6}, "workload.corpus: 1000000 is out of range"),
        ("rag", {"document_zipf": -1}, "workload.document_zipf: -1 is out of range"),
        ("rag", {"order": "random"}, "workload.order: 'random' is unknown; choose given, shuffled"),
        ("few_shot", {"tasks": 0}, "workload.tasks: 0 is out of range"),
        ("few_shot", {"tasks": 10**5, "examples": 1000}, "workload: tasks x examples is out of range"),
        ("generated_shared_prefix", {"num_groups": 0}, "workload.num_groups: 0 is out of range"),
        ("generated_shared_prefix", {"requests": 7}, "workload.requests: unknown key"),
    ],
)
def test_wrong_settings_are_one_line(kind: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario_with(kind, **wrong)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
