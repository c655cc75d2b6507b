"""When requests come: each process with the rate, the spread and the curve that its YAML asks for."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import resolved, scenario_from
from llmsim.scenarios.schema_generators import IndependentSettings
from llmsim.scenarios.workloads.arrivals import paced_times
from llmsim.scenarios.workloads.building import build_workload
from llmsim.sim.columns import Floats

RAMP = {"ramp": {"from": 0.0, "to": 20.0, "over_s": 100.0}}
POINTS = {"points": [{"at_s": 0.0, "rate": 4.0}, {"at_s": 50.0, "rate": 0.0}, {"at_s": 60.0, "rate": 30.0}]}
DAY = {"day": {"rates": [1.0, 5.0, 20.0, 10.0], "length_s": 40.0}}
SCENARIO: dict[str, Any] = {"name": "s", "model": "tiny", "hardware": {"gpu": "h100-sxm"}}


def settings(**given: Any) -> IndependentSettings:
    return IndependentSettings.model_validate({"type": "independent"} | given)


def times_s(num_requests: int, seed: int = 0, **given: Any) -> Floats:
    found = list(islice(paced_times(settings(**given), seed), num_requests))
    assert {type(time_ns) for time_ns in found} == {int}
    assert found == sorted(found)
    return np.array(found) / 1e9


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gamma_gaps_have_the_mean_and_the_spread_of_their_burstiness(burstiness: float) -> None:
    gaps = np.diff(times_s(200_000, rate=4.0, arrivals="gamma", burstiness=burstiness))
    cv = burstiness**-0.5
    assert gaps.mean() == pytest.approx(0.25, rel=6 * cv / 200_000**0.5)  # 6 standard errors
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.03)


def test_a_rate_of_inf_sends_all_at_once() -> None:
    assert set(times_s(500, rate="inf")) == {0.0}
    assert set(times_s(500, rate=float("inf"))) == {0.0}


def test_constant_arrivals_of_a_ramp_come_where_its_area_says() -> None:
    found = times_s(1500, rate=RAMP, arrivals="constant")
    ranks = np.arange(1500)
    climbing = ranks <= 1000  # 10 requests/s on average over 100 s; then 20 a second
    assert found[climbing] == pytest.approx(np.sqrt(ranks[climbing] / 0.1), abs=1e-8)
    assert found[~climbing] == pytest.approx(100 + (ranks[~climbing] - 1000) / 20, abs=1e-8)


def expected(curve_s: list[float], rates: list[float], edges_s: Floats) -> Floats:
    """Requests expected between the edges under a rate of straight lines."""
    fine = np.linspace(edges_s[0], edges_s[-1], 400_001)
    total = np.concatenate([[0.0], np.cumsum(np.interp(fine, curve_s, rates)[:-1] * np.diff(fine))])
    return np.diff(np.interp(edges_s, fine, total))


@pytest.mark.parametrize(
    ("rate", "curve_s", "rates"),
    [
        (RAMP, [0.0, 100.0, 300.0], [0.0, 20.0, 20.0]),
        (POINTS, [0.0, 50.0, 60.0, 300.0], [4.0, 0.0, 30.0, 30.0]),
        (DAY, [10.0 * step for step in range(31)], [1.0, 5.0, 20.0, 10.0] * 7 + [1.0, 5.0, 20.0]),
    ],
)
def test_poisson_arrivals_under_a_curve_come_as_often_as_it_says(
    rate: object, curve_s: list[float], rates: list[float]
) -> None:
    edges = np.linspace(0, 300, 31)
    num_runs = 40
    counts = sum(np.histogram(times_s(10_000, seed, rate=rate), edges)[0] for seed in range(num_runs))
    wanted = expected(curve_s, rates, edges) * num_runs
    assert (np.abs(counts - wanted) <= 5 * np.sqrt(wanted) + num_runs).all()  # the first comes at 0 in every run


def test_a_flat_curve_is_the_plain_rate() -> None:
    flat = {"ramp": {"from": 4.0, "to": 4.0, "over_s": 10.0}}
    assert times_s(1000, rate=flat) == pytest.approx(times_s(1000, rate=4.0), abs=1e-6)


def test_a_duration_ends_the_traffic_before_it() -> None:
    scenario = scenario_from(SCENARIO | {"workload": {"type": "independent", "rate": 10, "duration_s": 60}})
    assert scenario.workload.count is None
    found = times_s(100_000, rate=10.0)
    arrivals = [a.time_ns / 1e9 for a in build_workload(scenario, print).arrivals()]
    assert arrivals == list(found[found < 60])


def test_of_a_count_and_a_duration_the_first_to_be_reached_ends_it() -> None:
    both = {"type": "independent", "rate": 10, "duration_s": 60, "requests": 7}
    assert len(list(build_workload(scenario_from(SCENARIO | {"workload": both}), print).arrivals())) == 7


@pytest.mark.parametrize("rate", [RAMP, POINTS, DAY, "inf", float("inf"), 3])
def test_a_resolved_rate_loads_again(rate: object) -> None:
    scenario = scenario_from(SCENARIO | {"workload": {"type": "independent", "rate": rate}})
    whole = resolved(scenario, assemble(scenario).engine)
    assert scenario_from(whole).workload == scenario.workload


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"rate": "fast"}, "workload.rate: must be a number, not 'fast'"),
        ({"rate": {}}, "workload.rate.ramp: is required"),
        ({"rate": {"rmap": {}}}, "workload.rate.rmap: unknown key; did you mean 'ramp'? choose day, points, ramp"),
        ({"rate": {"ramp": {}, "points": []}}, "workload.rate.ramp: stands beside points: give one of them"),
        ({"rate": {"ramp": {"from": 1, "to": 0, "over_s": 9}}}, "workload.rate.ramp.to: 0 is out of range"),
        ({"rate": {"ramp": {"from": 1, "too": 2, "over_s": 9}}}, "workload.rate.ramp.too: unknown key; did you mean"),
        ({"rate": {"points": []}}, "workload.rate.points"),
        ({"rate": {"points": [{"at_s": 1, "rate": 1}]}}, "workload.rate: points must begin at at_s: 0"),
        ({"rate": {"points": [{"at_s": 0, "rate": 0}]}}, "workload.rate: the last rate lasts"),
        ({"rate": {"day": {"rates": [0, 0]}}}, "workload.rate.day: rates: one of them"),
        ({"rate": {"day": {"rates": [1]}}}, "workload.rate.day.rates"),
        ({"arrivals": "gama"}, "workload.arrivals: 'gama' is unknown; did you mean 'gamma'?"),
        ({"arrivals": "gamma", "burstiness": 0}, "workload.burstiness: 0 is out of range"),
        ({"arrivals": "empirical"}, "workload: gaps and arrivals: empirical go together"),
        ({"gaps": {"path": "gaps.csv"}}, "workload: gaps and arrivals: empirical go together"),
        ({"arrivals": "empirical", "gaps": {}}, "workload.gaps.path: is required"),
        ({"burstiness": 2}, "workload: burstiness goes with arrivals: gamma only"),
        ({"rate": "inf", "duration_s": 9}, "workload: duration_s alone does not bound a rate of inf"),
        ({"duration_s": 0}, "workload.duration_s: 0 is out of range"),
    ],
)
def test_a_wrong_pace_is_one_line(workload: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario_from(SCENARIO | {"workload": {"type": "independent"} | workload})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
