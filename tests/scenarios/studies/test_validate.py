from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from llmsim.calibrate.comparison import STATISTICS
from llmsim.calibrate.runs.measured_run import MeasuredRequest, MeasuredRun
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.schema_vllm import VllmEngine
from llmsim.scenarios.studies.bounds import Bound, exceeded
from llmsim.scenarios.studies.measured_replay import replay
from llmsim.scenarios.studies.run_parts import Part, Warmup
from llmsim.scenarios.studies.validate import assumptions, validate
from llmsim.scenarios.studies.validation_picture import draw_validation
from llmsim.tests.support.measured_runs import measured_on, small_assembly, traffic

SLOW = {"residual": {"decode_s": 0.0005, "prefill_s": 0.0005, "mixed_s": 0.0005}}
NO_WARMUP = Warmup(0, 0.0)


def test_an_engine_validated_against_itself_has_no_error() -> None:
    assembly = small_assembly()
    validation = validate(measured_on(assembly, traffic()), assembly, Warmup(5, 0.0), None, print)
    for statistics in [*validation.errors.values(), *validation.warmup_errors.values()]:
        assert [statistics[name]["error"] or 0.0 for name in STATISTICS] == pytest.approx([0.0] * 5, abs=1e-6)
    assert validation.scored.sum() == 55
    assert validation.budget.parts["e2e_s"]["replay"] == pytest.approx(0.0, abs=1e-6)
    assert validation.budget.parts["e2e_s"]["left"] == pytest.approx(0.0, abs=1e-6)


def test_an_engine_of_slower_steps_is_told_from_one_of_other_arrivals() -> None:
    validation = validate(measured_on(small_assembly(**SLOW), traffic()), small_assembly(), NO_WARMUP, None, print)
    budget = validation.budget
    assert budget.constant_s == pytest.approx(0.0005, rel=0.02)
    for parts in budget.parts.values():
        replayed, step_time, left = parts["replay"], parts["step_time"], parts["left"]
        assert replayed is not None
        assert step_time is not None
        assert left is not None
        assert replayed < -0.2
        assert step_time + left == pytest.approx(replayed)
        assert abs(left) < 0.03
        assert parts["arrival"] is not None


def test_a_residual_fitted_on_some_requests_is_scored_on_the_others() -> None:
    run = measured_on(small_assembly(**SLOW), traffic(80))
    told: list[str] = []
    validation = validate(run, small_assembly(), NO_WARMUP, Part("first:40"), told.append)
    assert validation.scored.tolist() == [False] * 40 + [True] * 40
    for metric in ("ttft_s", "tpot_s", "e2e_s"):
        errors = [validation.errors[metric][name]["error"] for name in STATISTICS]
        assert errors == pytest.approx([0.0] * 5, abs=0.08)
    assert validation.fitted is not None
    assert validation.as_json()["fitted"]["values"] == dict(validation.fitted.values)


def test_a_part_that_leaves_nothing_to_score_is_refused() -> None:
    run = measured_on(small_assembly(), traffic(10))
    with pytest.raises(ScenarioError, match="no request is left to be scored"):
        validate(run, small_assembly(), Warmup(1, 0.0), Part("last:9"), print)


def test_equal_blocks_are_hit_as_in_the_real_engine() -> None:
    shared = MeasuredRequest("a", 64, 8, 0.0, block_ids=(1, 2, 3, 4))
    follower = MeasuredRequest("b", 70, 8, 10.0, block_ids=(1, 2, 3, 4, 5))
    own = MeasuredRequest("c", 70, 8, 20.0)
    records = replay(small_assembly(), MeasuredRun(Path("run"), (shared, follower, own)))
    assert [records.requests[index].cached_tokens for index in range(3)] == [0, 64, 0]


def test_a_request_that_the_simulated_engine_refuses_is_named() -> None:
    run = MeasuredRun(Path("run"), (MeasuredRequest("huge", 10**6, 8, 0.0),))
    with pytest.raises(ScenarioError, match="run: request huge: refused, but the real engine served it"):
        replay(small_assembly(), run)


def test_what_is_taken_for_granted_is_told() -> None:
    assembly = small_assembly()
    told = " ".join(assumptions(traffic(), assembly))
    assert "prefix cache at the run's start is unknown" in told
    assert "share nothing" in told
    assert "KV blocks" not in told
    unpinned = assembly.scenario.model_copy(update={"engine": VllmEngine()})
    assert "KV blocks there were: 400 are assumed" in " ".join(
        assumptions(traffic(), replace(assembly, scenario=unpinned))
    )


def test_a_picture_is_drawn_without_a_series_too(tmp_path: Path) -> None:
    assembly = small_assembly()
    validation = validate(measured_on(assembly, traffic(20)), assembly, NO_WARMUP, None, print)
    draw_validation(validation, tmp_path / "a.png")
    draw_validation(validation, tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_the_warmup_is_a_number_of_requests_or_of_seconds() -> None:
    run = traffic(10)
    arrivals = run.times("arrival_s")
    assert Warmup.parsed("3").seconds(run) == arrivals[3]
    assert Warmup.parsed("0.01s").seconds(run) == 0.01
    assert Warmup.parsed(None).seconds(traffic(400)) == 1.0
    assert Warmup.parsed(None).seconds(run) == 0.0, "it would leave none of them"
    for text in ("-1", "1m", "", "s"):
        with pytest.raises(ScenarioError, match="--warmup"):
            Warmup.parsed(text)
    for text in ("10", "100s"):
        with pytest.raises(ScenarioError, match="leaves none of the 10 requests"):
            Warmup.parsed(text).seconds(run)


def test_a_part_is_some_of_the_requests_in_order_of_arrival() -> None:
    run = traffic(6)
    picked = {text: np.flatnonzero(Part.parsed(text, "--requests").of(run)).tolist() for text in ("first:2", "last:1")}
    assert picked == {"first:2": [0, 1], "last:1": [5]}
    assert Part("odd").of(run).tolist() == [True, False] * 3
    assert (Part("even").of(run) == ~Part("odd").of(run)).all()
    with pytest.raises(ScenarioError, match="--requests first:0: write first:150"):
        Part.parsed("first:0", "--requests")
    with pytest.raises(ScenarioError, match="leaves none of the run's 6 requests"):
        Part("first:6").of(run)


def error(share: float) -> dict[str, float | None]:
    return {"measured": 1.0, "simulated": 1 + share, "error": share}


def test_the_narrowest_bound_decides() -> None:
    statistics = {name: error(0.1) for name in STATISTICS}
    errors = {"ttft_s": statistics, "tpot_s": statistics, "queue_s": statistics}
    assert len(exceeded([Bound.parsed("0.05")], errors)) == 10
    assert exceeded([Bound.parsed("0.05"), Bound.parsed("ttft=0.2"), Bound.parsed("tpot=0.11")], errors) == []
    beyond = exceeded([Bound.parsed("0.2"), Bound.parsed("ttft.p50=0.01")], errors)
    assert beyond == ["ttft p50 is off by +10.0%, more than 1.0%"]


@pytest.mark.parametrize("text", ["x", "ttft=", "-0.1", "speed=0.1", "ttft.p42=0.1", "nan"])
def test_a_bound_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="--within"):
        Bound.parsed(text)
