"""Requests carry deadlines and predictions as the scenario asks for, and are the same otherwise."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from llmsim.policies.core.request import Arrival
from llmsim.scenarios.loading import scenario_from
from llmsim.scenarios.schema import OutputLengthPrediction
from llmsim.scenarios.workloads.building import build_workload
from llmsim.scenarios.workloads.foretold import predicted_tokens

AGENTS = {"type": "agent", "requests": 50, "output_tokens": {"uniform": {"min": 10, "max": 500}}}


def arrivals(workload: dict[str, Any] = AGENTS, seed: int = 0, **sections: Any) -> list[Arrival]:
    raw = {"name": "x", "model": "tiny", "hardware": {"gpu": "h100-sxm"}, "workload": workload, "run": {"seed": seed}}
    return list(build_workload(scenario_from(raw | sections), pytest.fail).arrivals())


def told(sigma: float, seed: int = 0, **sections: Any) -> list[Arrival]:
    return arrivals(seed=seed, predictions={"output_length": {"error": "lognormal", "sigma": sigma}}, **sections)


def test_nothing_is_foretold_where_nothing_is_asked_for() -> None:
    assert {(a.request.deadline_ns, a.request.predicted_tokens) for a in arrivals()} == {(None, None)}


def test_a_prediction_changes_nothing_else() -> None:
    plain = [replace(a, request=replace(a.request, predicted_tokens=None)) for a in told(0.7)]
    assert [(a.time_ns, a.output, a.request.id) for a in plain] == [
        (a.time_ns, a.output, a.request.id) for a in arrivals()
    ]
    assert [a.request.prompt.spans() for a in plain] == [a.request.prompt.spans() for a in arrivals()]


def test_a_perfect_prediction_is_the_truth_and_another_is_not() -> None:
    assert all(a.request.predicted_tokens == a.output.length for a in told(0.0))
    exact = sum(a.request.predicted_tokens == a.output.length for a in told(0.5))
    assert exact < 5
    above = sum((a.request.predicted_tokens or 0) > a.request.max_tokens for a in told(0.5))
    assert 10 < above < 40  # not cut at max_tokens, which here is the truth


def test_the_draw_belongs_to_seed_and_request() -> None:
    once, again, other = told(0.5), told(0.5), told(0.5, seed=1)
    factors = [[(a.request.predicted_tokens or 0) / a.output.length for a in run] for run in (once, again, other)]
    assert factors[0] == factors[1] != factors[2]
    rule = OutputLengthPrediction(sigma=0.5)
    assert predicted_tokens(rule, 100, 0, "r000001.2") == predicted_tokens(rule, 100, 0, "r000001.2+1")
    assert predicted_tokens(rule, 100, 0, "r000001.2") != predicted_tokens(rule, 100, 0, "r000001.3")


@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.5])
def test_the_error_is_log_normal_with_its_sigma(sigma: float) -> None:
    count, length = 4000, 10**9
    rule = OutputLengthPrediction(sigma=sigma)
    logs = np.log([predicted_tokens(rule, length, 7, f"r{number}") / length for number in range(count)])
    assert abs(logs.mean()) < 4 * sigma / math.sqrt(count)
    assert abs(logs.std() / sigma - 1) < 4 / math.sqrt(2 * count)
    assert abs(np.mean(np.abs(logs) < sigma) - 0.6827) < 4 * math.sqrt(0.25 / count)


@pytest.mark.parametrize(
    ("slo", "own", "seconds"),
    [
        ({"ttft_s": 2.0}, {}, 2.0),
        ({"e2e_s": 9.0}, {}, 9.0),
        ({"ttft_s": 2.0, "e2e_s": 9.0}, {}, 2.0),
        ({"ttft_s": 2.0}, {"deadline_s": 5.0}, 5.0),
        ({}, {"deadline_s": 5.0}, 5.0),
    ],
)
def test_a_deadline_is_the_requests_own_or_that_of_the_slo(
    slo: dict[str, float], own: dict[str, float], seconds: float
) -> None:
    for arrival in arrivals(AGENTS | own, slo=slo):
        assert arrival.request.deadline_ns == arrival.time_ns + round(seconds * 1e9)


def test_tenants_of_a_mixture_have_deadlines_of_their_own() -> None:
    parts = [
        {"tenant": "chat", "workload": {"type": "independent", "deadline_s": 1.0}},
        {"tenant": "batch", "workload": {"type": "independent"}},
    ]
    found = {
        (a.request.tenant, (a.request.deadline_ns or a.time_ns) - a.time_ns)
        for a in arrivals({"type": "mixture", "requests": 40, "parts": parts})
    }
    assert found == {("chat", 10**9), ("batch", 0)}


def test_in_a_closed_loop_a_deadline_counts_from_when_the_request_is_sent() -> None:
    raw = {
        "name": "x",
        "model": "tiny",
        "hardware": {"gpu": "h100-sxm"},
        "workload": {"type": "independent", "requests": 4, "rate": 100, "max_concurrency": 1, "deadline_s": 3.0},
    }
    workload = build_workload(scenario_from(raw), pytest.fail)
    (first,) = workload.arrivals()
    (second,) = workload.on_finish(first.request.id, 77 * 10**9)
    assert (second.time_ns, second.request.deadline_ns) == (77 * 10**9, 80 * 10**9)
