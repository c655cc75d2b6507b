"""Clients that wait for their answers: never more under way than there are clients, and no claim about overload."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario, resolved, scenario_from
from llmsim.scenarios.run import facts
from llmsim.scenarios.tables import warnings_of
from llmsim.scenarios.workloads.building import build_workload
from llmsim.sim.columns import RequestColumns
from llmsim.sim.driver import SimDriver
from llmsim.sim.executor import SimExecutor
from llmsim.sim.metrics import Summary, summarize
from llmsim.sim.recorder import Recorder
from llmsim.tests.support.scenario_files import write_scenario

LENGTHS = "workload.output_tokens={lognormal: {mean: 60, cv: 1}}"


def played(folder: Path, *overrides: str) -> tuple[RequestColumns, Summary]:
    """The requests and the summary of a run of the small scenario."""
    assembly = assemble(load_scenario(write_scenario(folder), overrides))
    recorder = Recorder()
    workload = build_workload(assembly.scenario, print)
    SimDriver(assembly.core(), SimExecutor(assembly.cost_model()), workload, recorder).run()
    recorder.close()
    return recorder.requests(), summarize(recorder, facts(assembly))


def most_under_way(requests: RequestColumns) -> int:
    """Of all moments, ends counting before beginnings."""
    moments = [(sent, 1) for sent in requests.sent_ns] + [(end, -1) for end in requests.last_token_ns]
    return int(np.max(np.cumsum([step for _, step in sorted(moments)])))


def test_so_many_requests_are_under_way_as_there_are_clients(tmp_path: Path) -> None:
    requests, _ = played(tmp_path, "workload.concurrency=7", "workload.requests=300", LENGTHS)
    assert len(requests.sent_ns) == 300
    assert most_under_way(requests) == 7
    ends = np.sort(requests.last_token_ns)
    assert np.sort(requests.sent_ns)[7:].tolist() == ends[: 300 - 7].tolist()  # each is sent as another ends


def test_a_client_pauses_before_its_next_request(tmp_path: Path) -> None:
    requests, _ = played(tmp_path, "workload.concurrency=1", "workload.pause_s=0.5", "workload.requests=20")
    waits = np.sort(requests.sent_ns)[1:] - np.sort(requests.last_token_ns)[:-1]
    assert set(waits.tolist()) == {500_000_000}


def test_a_maximum_concurrency_holds_back_those_that_come_too_soon(tmp_path: Path) -> None:
    limit = ["workload.rate=200", "workload.requests=300", LENGTHS]
    free, _ = played(tmp_path, *limit)
    held, _ = played(tmp_path, "workload.max_concurrency=3", *limit)
    assert most_under_way(free) > 3
    assert most_under_way(held) == 3
    assert (np.sort(held.sent_ns) >= np.sort(free.sent_ns)).all()
    loose, _ = played(tmp_path, "workload.max_concurrency=300", *limit)
    assert loose.sent_ns.tolist() == free.sent_ns.tolist()


def test_a_rate_of_inf_with_a_maximum_concurrency_is_that_many_clients(tmp_path: Path) -> None:
    common = ["workload.requests=100", LENGTHS]
    bench, _ = played(tmp_path, "workload.rate=inf", "workload.max_concurrency=5", *common)
    clients, _ = played(tmp_path, "workload.concurrency=5", *common)
    assert bench.sent_ns.tolist() == clients.sent_ns.tolist()


def test_clients_stop_when_the_time_is_over(tmp_path: Path) -> None:
    requests, _ = played(tmp_path, "workload.concurrency=4", "workload.duration_s=2", LENGTHS)
    assert len(requests.sent_ns) > 50
    assert requests.sent_ns.max() < 2e9
    assert requests.last_token_ns.max() > 1.9e9


def test_a_closed_loop_makes_no_claim_about_overload(tmp_path: Path) -> None:
    _, closed = played(tmp_path, "workload.concurrency=64", "engine.max_num_seqs=4", "workload.requests=300")
    assert (closed["closed_loop"], closed["overloaded"], closed["queue_slope_per_s"]) == (True, None, None)
    assert any("a closed loop:" in text for text in warnings_of(closed))
    _, opened = played(tmp_path, "workload.rate=500", "engine.max_num_seqs=1", "workload.requests=300")
    assert (opened["closed_loop"], opened["overloaded"]) == (False, True)
    assert not any("a closed loop" in text for text in warnings_of(opened))


def test_a_request_says_the_same_whoever_waits_how_long(tmp_path: Path) -> None:
    path = write_scenario(tmp_path)
    drawn = []
    for policy in ("{name: unlimited}", "{name: fixed, tokens: 64}"):
        overrides = ["workload.concurrency=5", "workload.requests=100", LENGTHS, f"policies.chunk_size={policy}"]
        workload = build_workload(load_scenario(path, overrides), print)
        first = list(workload.arrivals())
        rest = [a for n in range(200) for a in workload.on_finish(f"r{n:06d}", n * len(policy))]
        drawn.append([(a.request.id, a.request.prompt.spans(), a.output) for a in [*first, *rest]])
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == 100


def test_a_resolved_closed_loop_loads_again(tmp_path: Path) -> None:
    scenario = load_scenario(write_scenario(tmp_path), ["workload.concurrency=5", "workload.pause_s={exponential: 2}"])
    whole = resolved(scenario, assemble(scenario).engine)
    assert whole["workload"]["rate"] == "inf"
    assert scenario_from(whole).workload == scenario.workload


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["concurrency=0"], r"workload\.concurrency: 0 is out of range: must be at least 1"),
        (["max_concurrency=0"], r"workload\.max_concurrency: 0 is out of range"),
        (["concurrency=3", "rate=4"], "concurrency goes without a rate"),
        (["concurrency=3", "max_concurrency=4"], "give one"),
        (["pause_s=1"], "it goes with concurrency only"),
        (["concurrency=3", "pause_s=-1"], r"workload\.pause_s: -1 is out of range"),
        (["concurrency=3", "pause_s={expo: 1}"], "choose exponential, lognormal"),
    ],
)
def test_a_loop_that_cannot_be_is_one_line(tmp_path: Path, overrides: list[str], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        load_scenario(write_scenario(tmp_path), [f"workload.{text}" for text in overrides])
