"""Whole steps beside a table: as a file, and what they show of the sum of kernels."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from llmsim.calibrate.fit import fit
from llmsim.calibrate.step_residual import fit_residual
from llmsim.calibrate.whole_steps import STEPS, WholeStep, read_steps, steps_csv
from llmsim.calibrate.writing import write_zipped
from llmsim.policies.core.estimator import StepShape
from llmsim.sim.cost_model.correction import kind_of
from llmsim.sim.cost_model.profile import Profile
from llmsim.sim.cost_model.profile_header import Residuals
from llmsim.sim.cost_model.profiled import ProfiledCostModel
from llmsim.sim.cost_model.timings import ProfileError
from llmsim.tests.support.profiles import TINY, fitted, table

GAP_US = {"decode": 400.0, "prefill": -20.0, "mixed": 900.0}


def shapes() -> list[StepShape]:
    decodes = [StepShape([], n, n * context, context, n) for n, context in product((2, 9, 33), (100, 700, 3000))]
    prefills = [StepShape([(q, kv)], 0, 0, 0, 1) for q, kv in product((40, 100, 400), (10, 300, 900))]
    mixed = [StepShape([(q, 5)], n, n * 200, 200, n + 1) for q, n in product((20, 60, 300), (3, 10, 40))]
    return [*decodes, *prefills, *mixed]


def steps_of(profile: Profile) -> list[WholeStep]:
    """Steps that take their kernels' sum and a gap."""
    model = ProfiledCostModel(profile, TINY)
    return [
        WholeStep(TINY.num_layers, shape, model.step_cost(shape).device_ns / 1e3 + GAP_US[kind_of(shape)], 5, 1.0)
        for shape in shapes()
    ]


def test_steps_come_back_from_their_file(tmp_path: Path) -> None:
    steps = steps_of(fitted())
    write_zipped(tmp_path / STEPS, steps_csv(steps))
    assert read_steps(tmp_path) == steps
    assert read_steps(tmp_path / "nowhere") == []


def test_a_file_from_before_steps_shared_blocks_is_read(tmp_path: Path) -> None:
    steps = steps_of(fitted())
    lines = [line.rpartition(",")[0] for line in steps_csv(steps).splitlines()]
    write_zipped(tmp_path / STEPS, "\n".join(lines))
    assert read_steps(tmp_path) == steps


def test_a_spread_may_be_left_empty(tmp_path: Path) -> None:
    steps = [step._replace(spread_us=None) for step in steps_of(fitted())]
    write_zipped(tmp_path / STEPS, steps_csv(steps))
    assert read_steps(tmp_path) == steps


def test_coefficients_that_no_header_may_hold_are_one_line() -> None:
    slow = [step._replace(time_us=1e9 * (1 + i % 3)) for i, step in enumerate(steps_of(fitted()))]
    with pytest.raises(ProfileError, match=r"^made-up: its times cannot be fitted: [a-z]+_s\w* comes to 1\d+\.\d+: I"):
        fit(table(), steps=slow)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("400+900", "400-900", r"row 19: chunks is '400-900'; it must be as 512\+0 128\+1024"),
        (",1.0,0\n", ",1.0,-2\n", "row 2: shared_tokens is '-2'; it must be a whole number"),
        ("chunks", "chonks", "column chunks is missing"),
        ("4,2,200,", "4,2,-1,", "row 2: context_tokens is '-1'; it must be a whole number"),
        (",1.0,0\n", ",a bit,0\n", "row 2: spread_us is 'a bit', not a number"),
        (",1.0,0\n", ",-1.0,0\n", "row 2: spread_us is -1.0; a spread is 0 or more, or left empty"),
        (",1.0,0\n", ",nan,0\n", "row 2: spread_us is nan; a spread is 0 or more"),
        (",5,1.0,", ",0,1.0,", "row 2: repeats is 0; it must be 1 to"),
        (",,606.719", ",,1e300", "row 2: time_us is 1e300; a step of 4 layers takes 1.2 us to an hour"),
        (",,606.719", ",,0.6", "row 2: time_us is 0.6; a step of 4 layers takes 1.2 us to an hour"),
        ("4,2,200,100,2,", "0,2,200,100,2,", "row 2: num_layers is 0; it must be 1 to 10,000"),
        ("4,2,200,100,2,", "20000,2,200,100,2,", "row 2: num_layers is 20000; it must be 1 to 10,000"),
        ("4,2,200,100,2,", "4,2,200,201,2,", "row 2: max_context is 201; 2 decodes have a context_tokens of 200"),
        ("4,2,200,100,2,", "4,2,200,99,2,", "row 2: max_context is 99; the mean of 2 decodes is more"),
        ("4,2,200,100,2,", "4,2,1,1,2,", "row 2: context_tokens is 1; each of 2 decodes has at least 1"),
        ("4,2,200,100,2,", "4,0,200,100,0,", "row 2: holds nothing"),
        ("4,0,0,0,1,", "4,0,9,9,1,", "row 11: context_tokens is 9 and max_context 9, and num_decodes 0"),
        ("4,2,200,100,2,", "4,2,200,100,3,", "row 2: num_samples is 3, with 2 decodes and 0 chunks"),
        ("4,2,200,100,2,", "4,1e12,200,100,2,", "row 2: num_decodes is 1e12; it must be at most 1,000,000,000"),
        (",1.0,0\n", ",1.0,101\n", "row 2: shared_tokens is 101; at most 100 tokens of this context"),
        ("400+900", "0+900", r"row 19: chunks is '0\+900'; each has 1 to 1,000,000,000 new tokens"),
        ("400+900", "400+-9", r"row 19: chunks is '400\+-9'; each has 1 to 1,000,000,000 new tokens and 0 cached"),
    ],
)
def test_a_file_that_is_wrong_is_one_line(tmp_path: Path, before: str, after: str, says: str) -> None:
    text = steps_csv(steps_of(fitted()))
    assert before in text
    write_zipped(tmp_path / STEPS, text.replace(before, after, 1))
    with pytest.raises(ProfileError, match=says):
        read_steps(tmp_path)


def test_a_fit_finds_what_steps_take_beyond_their_kernels() -> None:
    made = fit(table(), steps=steps_of(fitted()))
    residual, found = made.header.residual, made.header.fit
    assert found is not None
    assert 0 < residual.decode_s <= 400e-6
    assert 0 < residual.mixed_s <= 900e-6
    assert -20e-6 <= residual.prefill_s < 0
    for errors in found.whole_steps.values():
        assert errors.with_residual.median < errors.kernels_alone.median


def test_a_residual_is_a_share_where_that_is_what_steps_show() -> None:
    profile = fitted()
    model = ProfiledCostModel(profile, TINY)
    steps = [
        WholeStep(TINY.num_layers, shape, 1.1 * model.step_cost(shape).device_ns / 1e3, 5, 1.0)
        for shape in (*shapes(), *shapes())
    ]
    residual, errors = fit_residual(profile, steps, 0)
    assert (residual.decode_s, residual.prefill_s, residual.mixed_s) == (0, 0, 0)
    for share in (residual.decode_share, residual.prefill_share, residual.mixed_share):
        assert 0.08 < share < 0.1
    for error in errors.values():
        assert error.with_residual.p95 < 0.02 < error.kernels_alone.median


def test_steps_that_take_what_their_kernels_take_get_no_residual() -> None:
    profile = fitted()
    model = ProfiledCostModel(profile, TINY)
    exact = [WholeStep(TINY.num_layers, shape, model.step_cost(shape).device_ns / 1e3, 5, 1.0) for shape in shapes()]
    assert fit_residual(profile, exact, 0)[0] == Residuals()


def test_more_steps_draw_the_residual_nearer_to_what_they_show() -> None:
    profile = fitted()
    steps = steps_of(profile)
    few, many = (fit_residual(profile, chosen, 0)[0].decode_s for chosen in (steps, steps * 10))
    assert abs(many - 400e-6) < abs(few - 400e-6) < 400e-6


def test_a_kind_of_step_with_few_of_it_gets_no_residual() -> None:
    profile = fitted()
    assert fit_residual(profile, steps_of(profile)[:3], 0) == (Residuals(), {})


def test_a_table_without_steps_keeps_the_residual_that_it_has() -> None:
    assert fit(table(residual=Residuals(decode_s=1e-3))).header.residual.decode_s == 1e-3
