"""Generated traffic: equal for equal seeds, each draw on its own, with the shares and shapes asked for."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from itertools import islice
from typing import Any

import numpy as np
import pytest

from llmsim.policies.core.request import Arrival
from llmsim.policies.core.workload import Workload
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.schema_generators import AgentSettings, IndependentSettings
from llmsim.scenarios.workloads import draws
from llmsim.scenarios.workloads.arrivals import constant_arrivals, random_arrivals
from llmsim.scenarios.workloads.building import generated_workload
from llmsim.scenarios.workloads.draws import exponentials, zipf_ranks
from llmsim.scenarios.workloads.lengths import lengths

LOG_NORMAL = {"lognormal": {"mean": 300, "cv": 1.5}}


def agents(seed: int = 0, **settings: Any) -> Workload:
    given: dict[str, Any] = {"type": "agent", "requests": 500} | settings
    return generated_workload(AgentSettings.model_validate(given), seed)


def independent(seed: int = 0, **settings: Any) -> Workload:
    given: dict[str, Any] = {"type": "independent", "requests": 500} | settings
    return generated_workload(IndependentSettings.model_validate(given), seed)


def digest(workload: Workload) -> str:
    """A hash of everything that the workload says."""
    whole = hashlib.sha256()
    for arrival in workload.arrivals():
        whole.update(repr(arrival).encode())
    return whole.hexdigest()


def times(workload: Workload) -> list[int]:
    return [arrival.time_ns for arrival in workload.arrivals()]


def test_same_seed_yields_the_same_requests_in_another_process() -> None:
    code = (
        "from llmsim.tests.scenarios.workloads.test_generated import *\n"
        "print(digest(agents(7)), digest(independent(7, prompt_tokens=LOG_NORMAL)))"
    )
    environment = os.environ | {"PYTHONHASHSEED": "123", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert run.stdout.split() == [digest(agents(7)), digest(independent(7, prompt_tokens=LOG_NORMAL))]


def test_another_seed_yields_other_requests() -> None:
    assert digest(agents(0)) != digest(agents(1))


def test_a_workload_can_be_played_again() -> None:
    workload = agents()
    assert digest(workload) == digest(workload)


def test_arrivals_do_not_move_when_lengths_tenants_or_limits_change() -> None:
    usual = times(agents())
    assert times(agents(question_tokens=17, output_tokens=LOG_NORMAL, tenants=3, max_tokens={"fixed": 9})) == usual
    assert times(independent(prompt_tokens=LOG_NORMAL)) == usual


def test_more_requests_begin_with_the_same_ones() -> None:
    few = [repr(arrival) for arrival in agents(requests=100).arrivals()]
    many = [repr(arrival) for arrival in agents(requests=5000).arrivals()]
    assert many[:100] == few


def test_a_question_does_not_depend_on_the_rate_or_on_other_lengths() -> None:
    def questions(workload: Workload) -> list[int]:
        return [arrival.request.prompt.spans()[-1][2] for arrival in workload.arrivals()]

    assert questions(agents(rate=1.0, system_tokens=LOG_NORMAL, output_tokens=3)) == questions(agents(rate=9.0))


def test_draws_do_not_depend_on_how_many_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = digest(agents(requests=3000))
    monkeypatch.setattr(draws, "_CHUNK", 7)
    assert digest(agents(requests=3000)) == usual


def test_poisson_gaps_have_the_mean_and_the_spread_of_exponential_ones() -> None:
    gaps = (
        np.diff(np.fromiter(islice(random_arrivals(4.0, exponentials(1, "arrivals")), 100_001), dtype=np.int64)) / 1e9
    )
    assert gaps.mean() == pytest.approx(0.25, rel=0.02)  # 6 standard errors
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.03)
    assert (gaps > 0.25).mean() == pytest.approx(np.exp(-1), abs=0.01)


def test_constant_arrivals_are_even_and_do_not_drift() -> None:
    assert list(islice(constant_arrivals(3.0), 4)) == [0, 333_333_333, 666_666_666, 1_000_000_000]
    assert next(islice(constant_arrivals(3.0), 3_000_000, None)) == 10**6 * 10**9


def test_arrivals_are_integers_in_order() -> None:
    for kind in ("poisson", "constant"):
        found = times(independent(arrivals=kind, rate=1000.0))
        assert found == sorted(found)
        assert {type(time_ns) for time_ns in found} == {int}
        assert found[0] == 0


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.5])
def test_zipf_shares_fall_with_the_rank(exponent: float) -> None:
    num_draws = 100_000
    counts = Counter(islice(zipf_ranks(3, "tenant", 5, exponent), num_draws))
    weights = np.arange(1, 6) ** -exponent
    for rank, share in enumerate(weights / weights.sum()):
        assert counts[rank] / num_draws == pytest.approx(share, abs=0.01)  # 6 standard errors
    assert set(counts) == set(range(5))


def test_one_rank_takes_all() -> None:
    assert set(islice(zipf_ranks(0, "tenant", 1, 1.0), 100)) == {0}


def test_log_normal_lengths_have_the_mean_and_spread_that_were_asked_for() -> None:
    settings = IndependentSettings.model_validate({"type": "independent", "prompt_tokens": LOG_NORMAL})
    drawn = np.fromiter(islice(lengths(settings.prompt_tokens, 0, "prompt_tokens"), 200_000), dtype=np.int64)
    assert drawn.mean() == pytest.approx(300, rel=0.03)
    assert drawn.std() / drawn.mean() == pytest.approx(1.5, rel=0.15)
    assert drawn.min() >= 1


def test_log_normal_lengths_stay_within_their_bounds() -> None:
    spec = {"lognormal": {"mean": 2, "cv": 3, "max": 5}}
    found = {arrival.request.prompt.num_tokens for arrival in independent(prompt_tokens=spec).arrivals()}
    assert found == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("rule", "asked", "generated"),
    [
        ("exact", 10, 10),
        ({"fixed": 64}, 64, 10),
        ({"fixed": 4}, 4, 4),
        ({"factor": 1.1}, 11, 10),
        ({"factor": 1}, 10, 10),
    ],
)
def test_max_tokens_follow_the_rule_and_cut_the_output(rule: object, asked: int, generated: int) -> None:
    arrival = next(independent(output_tokens=10, max_tokens=rule).arrivals())
    assert arrival.request.max_tokens == asked
    assert arrival.output.length == generated


def parts(arrival: Arrival) -> list[tuple[object, int]]:
    """Content and length of each part of a prompt."""
    return [(content, length) for content, _, length in arrival.request.prompt.spans()]


def test_a_prompt_is_system_tools_repository_and_question() -> None:
    workload = agents(system_tokens=11, tools_tokens=22, repository_tokens=33, question_tokens=44)
    for arrival in workload.arrivals():
        assert [length for _, length in parts(arrival)] == [11, 22, 33, 44]


def test_requests_share_what_their_tenant_and_repository_share_and_nothing_else() -> None:
    arrivals = list(agents(tenants=4, repositories=3, requests=2000, system_tokens=LOG_NORMAL).arrivals())
    tenants_of = [{} for _ in range(3)]  # type: list[dict[object, set[str | None]]]
    for arrival in arrivals:
        for owners, (content, _) in zip(tenants_of, parts(arrival), strict=False):
            owners.setdefault(content, set()).add(arrival.request.tenant)
    assert [len(owners) for owners in tenants_of] == [4, 4, 12]
    assert all(len(tenants) == 1 for owners in tenants_of for tenants in owners.values())
    shared_lengths = {part for arrival in arrivals for part in parts(arrival)[:3]}
    assert len(shared_lengths) == 4 + 4 + 12  # a part has one length, whoever sends it


def test_content_of_prompts_and_outputs_never_meets() -> None:
    arrivals = list(agents().arrivals())
    shared_parts = {content for arrival in arrivals for content, _ in parts(arrival)[:3]}
    questions = [parts(arrival)[3][0] for arrival in arrivals]
    outputs = [arrival.request.output_content for arrival in arrivals]
    assert len(shared_parts) + 2 * len(arrivals) == len({*shared_parts, *questions, *outputs})


def test_independent_requests_share_nothing() -> None:
    contents = [arrival.request.prompt.contents[0] for arrival in independent().arrivals()]
    assert len(set(contents)) == len(contents) == 500


def test_the_busiest_tenant_has_its_zipf_share() -> None:
    arrivals = agents(requests=20_000, tenants=10).arrivals()
    counts = Counter(arrival.request.tenant for arrival in arrivals)
    assert counts.most_common(1)[0][0] == "tenant-0"
    assert counts["tenant-0"] / 20_000 == pytest.approx(1 / sum(1 / rank for rank in range(1, 11)), abs=0.02)


def test_finishes_set_nothing_off() -> None:
    assert list(agents().on_finish("r000000", 1)) == []
    assert list(independent().on_finish("r000000", 1)) == []


def test_a_request_after_a_hundred_years_is_an_error() -> None:
    with pytest.raises(ScenarioError, match=r"workload: request 3,1\d\d would arrive after more than 100 years"):
        times(independent(rate=1e-6, arrivals="constant", requests=4000))
