"""Timings that cannot be are refused, with the row and the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmsim.calibrate.fit import checked, fit
from llmsim.sim.cost_model.timings import ProfileError, Timing
from llmsim.tests.support.profiles import table, timings, us


def refusal(rows: list[Timing]) -> str:
    """What a table of these rows is told."""
    with pytest.raises(ProfileError) as refused:
        fit(replace(table(), timings=rows))
    return str(refused.value)


def with_row(kernel: str, shape: tuple[int, ...], time_us: float) -> list[Timing]:
    """The table and one row more."""
    return [*timings(), Timing(kernel, shape, time_us, "t.csv: row 999")]


@pytest.mark.parametrize("kernel", ["qkv", "norm", "lm_head"])
@pytest.mark.parametrize(("factor", "unit"), [(1e-3, "ms"), (1e3, "ns")])
def test_a_time_a_thousandfold_off_is_refused_with_its_row(kernel, factor, unit):
    time = us(kernel, (100,)) * factor
    assert refusal(with_row(kernel, (100,), time)).startswith(f"t.csv: row 999: {kernel} takes {time:g} us where its ")
    assert refusal(with_row(kernel, (100,), time)).endswith(f"is it in {unit}?")


@pytest.mark.parametrize(("shape", "factor"), [((512, 1024, 64, 8192, 8192), 1e-3), ((0, 0, 4, 500, 500), 1e3)])
def test_attention_a_thousandfold_off_is_refused(shape, factor):
    assert "t.csv: row 999: attention takes" in refusal(with_row("attention", shape, us("attention", shape) * factor))


def test_duplicates_that_disagree_are_refused_with_both_rows():
    first = next(timing for timing in timings() if timing.kernel == "qkv")
    message = refusal(with_row("qkv", first.shape, 2 * first.time_us))
    assert message.startswith("t.csv: row 999: ")
    assert message.endswith(f"{first.time_us:g} us of the same shape in {first.where.rpartition(': ')[2]}")


def test_duplicates_that_agree_become_their_median():
    first = next(timing for timing in timings() if timing.kernel == "qkv")
    near = [first._replace(time_us=first.time_us * factor, where="t.csv: row 999") for factor in (1.02, 1.05)]
    merged = checked(replace(table(), timings=[*timings(), *near]))
    assert len(merged) == len(timings())
    assert next(t for t in merged if t[:2] == first[:2]).time_us == first.time_us * 1.02


def test_a_grid_of_one_point_is_refused():
    rows = [timing for timing in timings() if timing.kernel != "qkv" or timing.shape == (16,)]
    where = next(timing.where for timing in rows if timing.kernel == "qkv")
    assert refusal(rows) == f"{where}: is the only point of qkv; a curve needs two"


@pytest.mark.parametrize(("gone", "noun"), [(0, "prefill alone"), (2, "decodes alone")])
def test_a_table_without_decodes_or_prefill_is_refused(gone, noun):
    rows = [t for t in timings() if t.kernel != "attention" or t.shape[2 - gone] or not t.shape[gone]]
    assert refusal(rows).endswith(f"has no timing of attention with {noun}")


def test_a_kernel_that_the_model_does_not_have_is_refused():
    assert refusal(with_row("qk_norm", (8,), 5.0)) == "t.csv: row 999: tiny, so divided, has no kernel qk_norm"


def test_an_empty_table_is_refused():
    assert refusal([]) == "made-up: has no timings"
