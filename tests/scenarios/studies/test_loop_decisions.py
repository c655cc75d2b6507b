"""What two runs decided, out of their journals; runs of the simulator alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmsim.calibrate.loop.recorded import priced
from llmsim.scenarios.assembly import Assembly, assemble
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.run import run_into
from llmsim.scenarios.studies.loop_decisions import first_divergence, recorded_steps
from llmsim.tests.support.small_real_runs import write_small


def simulated(folder: Path, name: str, *overrides: str) -> Assembly:
    """A run of the small scenario into `folder / name`, with its journal."""
    assembly = assemble(load_scenario(write_small(folder), overrides))
    run_into(assembly, folder / name, journal=True, warn=print)
    return assembly


def test_a_run_decides_as_it_does(tmp_path: Path) -> None:
    for name in ("a", "b"):
        simulated(tmp_path, name)
    found = first_divergence(tmp_path / "a", tmp_path / "b")
    assert (found["step"], found["differs"]) == (None, [])
    assert found["num_steps"] == found["num_steps_simulated"] > 20


def test_another_order_of_admission_is_found_in_the_first_step_that_it_changes(tmp_path: Path) -> None:
    simulated(tmp_path, "a")
    simulated(tmp_path, "b", "policies.scheduling.name=shortest_prompt_first")
    found = first_divergence(tmp_path / "a", tmp_path / "b")
    assert 0 < found["step"] < found["num_steps"]
    assert {"chunks", "admitted"} & set(found["differs"])
    assert found["measured"] != found["simulated"]


def test_a_run_that_ends_earlier_differs_where_it_ends(tmp_path: Path) -> None:
    simulated(tmp_path, "a", "workload.requests=1")
    simulated(tmp_path, "b", "workload.requests=1", "workload.output_tokens=90")
    found = first_divergence(tmp_path / "a", tmp_path / "b")
    assert found["step"] <= found["num_steps"] < found["num_steps_simulated"]


def test_steps_of_a_simulation_are_priced_without_an_error(tmp_path: Path) -> None:
    assembly = simulated(tmp_path, "a")
    steps, replayed = recorded_steps(tmp_path / "a")
    assert replayed.difference is None
    assert len(steps) == replayed.num_plans
    found = priced(steps, assembly.cost_model())
    assert {"decode", "mixed"} <= found.keys()
    for of_kind in found.values():
        errors = of_kind.errors()
        assert (errors.median, errors.p95) == (0.0, 0.0)
        assert errors.bias == pytest.approx(0.0, abs=1e-12)
