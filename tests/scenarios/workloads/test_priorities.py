from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.schema_pacing import PriorityWeight
from llmsim.scenarios.workloads.building import build_workload
from llmsim.scenarios.workloads.priorities import priorities
from llmsim.tests.support.scenario_files import write_scenario


def test_priorities_come_with_their_weights() -> None:
    choices = [PriorityWeight(priority=-1, weight=1.0), PriorityWeight(priority=7, weight=3.0)]
    counts = Counter(islice(priorities(choices, 0), 40_000))
    assert counts[-1] / 40_000 == pytest.approx(0.25, abs=0.01)
    assert counts[-1] + counts[7] == 40_000


def test_priorities_do_not_move_other_draws(tmp_path: Path) -> None:
    path = write_scenario(tmp_path)
    plain, mixed = (
        list(build_workload(load_scenario(path, overrides), print).arrivals())
        for overrides in ([], ["workload.priorities=[{priority: 0, weight: 1}, {priority: 5, weight: 1}]"])
    )
    assert [a.time_ns for a in plain] == [a.time_ns for a in mixed]
    assert [a.output for a in plain] == [a.output for a in mixed]
    assert {a.request.priority for a in plain} == {0}
    assert {a.request.priority for a in mixed} == {0, 5}


@pytest.mark.parametrize("wrong", ["[]", "[{priority: 0, weight: 0}]", "[{priority: a, weight: 1}]", "[{priority: 0}]"])
def test_wrong_priorities_are_one_line(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ScenarioError, match=r"workload\.priorities"):
        load_scenario(write_scenario(tmp_path), [f"workload.priorities={wrong}"])
