"""What holds for each generator: equal for equal seeds, in any process and under any policy; ids that never meet."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from llmsim.policies.core.request import Arrival
from llmsim.policies.core.workload import Workload
from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.loading import resolved, scenario_from
from llmsim.scenarios.schema_workload import workload_types
from llmsim.scenarios.workloads.building import build_workload
from llmsim.sim.driver import SimDriver
from llmsim.sim.executor import SimExecutor
from llmsim.sim.recorder import Recorder
from llmsim.tests.support.generators import SMALL, digest, scenario_with, whole, workload_of

KINDS = sorted(SMALL)


def test_every_generator_is_tried_here() -> None:
    assert [kind for kind in workload_types() if kind != "trace"] == KINDS


def test_same_seed_yields_the_same_requests_in_another_process() -> None:
    code = (
        "from llmsim.tests.support.generators import *\n"
        "print(*[digest(workload_of(kind, 7)) for kind in sorted(SMALL)])"
    )
    environment = os.environ | {"PYTHONHASHSEED": "123", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert run.stdout.split() == [digest(workload_of(kind, 7)) for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS)
def test_another_seed_yields_other_requests_and_the_same_one_the_same(kind: str) -> None:
    workload = workload_of(kind)
    assert digest(workload) == digest(workload) != digest(workload_of(kind, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_no_content_stands_for_two_things(kind: str) -> None:
    arrivals = list(whole(workload_of(kind)))
    ids = [a.request.id for a in arrivals]
    outputs = [a.request.output_content for a in arrivals]
    assert len(set(ids)) == len(set(outputs)) == len(arrivals)
    own = [a.request.prompt.contents[-1] for a in arrivals]
    assert len(set(own)) == len(arrivals)
    assert not set(own) & set(outputs)
    lengths: dict[object, set[int]] = {}
    for arrival in arrivals:
        for content, start, length in arrival.request.prompt.spans():
            assert start == 0
            lengths.setdefault(content, set()).add(length)
    assert all(len(found) == 1 for found in lengths.values())  # a part has one length, whoever sends it


class Listened:
    """A workload that remembers what it said."""

    def __init__(self, inner: Workload) -> None:
        self._inner = inner
        self.said: list[Arrival] = []

    def arrivals(self) -> Any:
        for arrival in self._inner.arrivals():
            self.said.append(arrival)
            yield arrival

    def on_finish(self, request_id: str, now_ns: int) -> Any:
        followers = list(self._inner.on_finish(request_id, now_ns))
        self.said.extend(followers)
        return followers


@pytest.mark.parametrize("kind", KINDS)
def test_two_runs_that_differ_in_a_policy_see_the_same_traffic(kind: str) -> None:
    heard = []
    for policies in ({}, {"chunk_size": {"name": "fixed", "tokens": 64}, "batching": {"name": "static"}}):
        scenario = scenario_with(kind, rate=50.0)
        scenario = scenario_from(scenario.model_dump(mode="json", by_alias=True) | {"policies": policies})
        assembly = assemble(scenario)
        workload = Listened(build_workload(scenario, print))
        recorder = Recorder()
        end = SimDriver(assembly.core(), SimExecutor(assembly.cost_model()), workload, recorder).run()
        recorder.close()
        heard.append((workload.said, end))
    (one, one_end), (other, other_end) = heard
    assert one_end != other_end
    by_id = {a.request.id: a for a in other}
    assert len(one) == len(other) == len(by_id)
    for arrival in one:
        twin = by_id[arrival.request.id]
        assert arrival.request.prompt.spans() == twin.request.prompt.spans()
        assert (arrival.output, arrival.request.max_tokens) == (twin.output, twin.request.max_tokens)
        if "." not in arrival.request.id:  # a later turn comes when the one before has ended
            assert arrival.time_ns == twin.time_ns


@pytest.mark.parametrize("kind", KINDS)
def test_a_resolved_workload_loads_again(kind: str) -> None:
    scenario = scenario_with(kind)
    again = scenario_from(resolved(scenario, assemble(scenario).engine))
    assert again.workload == scenario.workload
    assert digest(build_workload(again, print)) == digest(build_workload(scenario, print))
