"""What a run's first requests tell of its engine's cold start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmsim.scenarios.studies.cold_start import found_cold_start
from llmsim.scenarios.studies.run_parts import Warmup
from llmsim.scenarios.studies.validate import validate
from llmsim.scenarios.studies.validation_table import validation_tables
from llmsim.tests.support.measured_runs import measured_on, small_assembly, traffic

WARMUP_S = 0.1


@pytest.mark.parametrize("host_s", [0.05, 0.3])
def test_the_first_steps_host_time_is_told_by_the_warmup(host_s: float) -> None:
    assembly = small_assembly()
    run = measured_on(assembly, traffic(), (host_s,))
    assert found_cold_start(run, assembly, WARMUP_S) == pytest.approx((host_s,), rel=0.03)


def test_an_engine_that_starts_warm_has_none() -> None:
    assembly = small_assembly()
    assert found_cold_start(measured_on(assembly, traffic()), assembly, WARMUP_S) == ()


def test_a_cost_model_that_is_far_off_is_not_taken_for_a_cold_start() -> None:
    slow = {"residual": {"decode_s": 0.004, "prefill_s": 0.004, "mixed_s": 0.004}}
    run = measured_on(small_assembly(**slow), traffic())
    assert found_cold_start(run, small_assembly(), WARMUP_S) == ()


def test_without_a_warmup_or_without_the_engines_own_times_nothing_is_told() -> None:
    assembly = small_assembly()
    run = measured_on(assembly, traffic(), (0.3,))
    at_client = replace(run, requests=tuple(replace(request, scheduled_s=None) for request in run.requests))
    assert found_cold_start(run, assembly, 0.0) == ()
    assert found_cold_start(at_client, assembly, WARMUP_S) == ()


def test_what_the_warmup_tells_mends_those_who_come_after_it() -> None:
    assembly = small_assembly()
    run = measured_on(assembly, traffic(), (0.3,))
    told = validate(run, assembly, Warmup(None, WARMUP_S), None, print)
    cold = validate(run, assembly, Warmup(None, WARMUP_S), None, print, ())
    assert abs(told.errors["ttft_s"]["mean"]["error"] or 0) < 0.05
    assert (cold.errors["ttft_s"]["mean"]["error"] or 0) < -0.2
    assert told.as_json()["cold_start_s"] == pytest.approx([0.3], rel=0.03)
    assert cold.as_json()["cold_start_s"] == []
    shown = [str(part) for part in validation_tables(told).renderables]  # type: ignore[attr-defined]
    assert any("the first steps take the host 0.3 s" in part for part in shown)
