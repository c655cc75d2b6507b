"""From visits to the rows of a table, and to what its header says."""

from __future__ import annotations

import pytest

from llmsim.policies.core.estimator import StepShape
from llmsim.scenarios.studies.profile_sheet import with_floors_below
from llmsim.scenarios.studies.profile_table import (
    TimedShape,
    attention_launches,
    host_of,
    steps_of,
    timings_of,
)
from llmsim.sim.cost_model.profile_header import DataSheet
from llmsim.sim.cost_model.timings import Timing
from llmsim.tests.support.profiles import HEADER

MIXED = StepShape([(8, 100)], 3, 60, 30, 4)
CHUNK = StepShape([(8, 100)], 0, 0, 0, 1)


def test_launches_of_one_shape_are_one_row_whatever_step_they_come_from() -> None:
    visits = [
        TimedShape("a", MIXED, {"qkv": [[10.0, 20.0], [12.0, 20.0]], "lm_head": [[7.0]]}, []),
        TimedShape("a", MIXED, {"qkv": [[11.0, 26.0]]}, []),
        TimedShape("b", StepShape([(11, 0)], 0, 0, 0, 1), {"qkv": [[31.0, 20.0]]}, []),
    ]
    rows = {timing[:2]: timing for timing in timings_of(visits)}
    assert set(rows) == {("qkv", (11,)), ("lm_head", (4,))}
    merged = rows["qkv", (11,)]
    assert (merged.time_us, merged.repeats, merged.spread_us) == (15.75, 4, 4.5)


def test_decodes_and_a_chunk_of_one_step_are_rows_apart_and_chunks_together_none() -> None:
    kernels = {"decode_attention": [[5.0]], "extend_attention": [[9.0]]}
    both = {timing[:2] for timing in timings_of([TimedShape("a", MIXED, kernels, [])])}
    assert both == {("attention", (0, 0, 3, 20, 30)), ("attention", (8, 100, 0, 0, 0))}
    several = StepShape([(8, 100), (4, 0)], 0, 0, 0, 2)
    assert timings_of([TimedShape("b", several, {"extend_attention": [[9.0]]}, [])]) == []


def test_what_chunks_of_one_launch_save_is_what_they_cost_alone_less_what_they_cost_together() -> None:
    shapes = {"a": [(8, 100)], "b": [(4, 0)], "c": [(8, 100), (4, 0), (4, 0)]}
    times = {"a": 30.0, "b": 20.0, "c": 50.0}
    visits = [
        TimedShape(name, StepShape(chunks, 0, 0, 0, len(chunks)), {"extend_attention": [[times[name]]]}, [])
        for name, chunks in shapes.items()
    ]
    assert attention_launches(visits).shared_us == 10.0
    assert attention_launches(visits[:2]).shared_us == 0.0
    assert attention_launches([]).launches == "separate"


def test_whole_steps_are_medians_over_all_visits() -> None:
    visits = [TimedShape("w", MIXED, {}, [4.0, 6.0]), TimedShape("w", MIXED, {}, [8.0])]
    (step,) = steps_of(visits, num_layers=2)
    assert (step.num_layers, step.shape, step.time_us, step.repeats) == (2, MIXED, 6.0, 3)


def test_one_batch_that_was_woken_late_does_not_tilt_the_hosts_line() -> None:
    costs = [[1, 10, 10, 31], [4, 13, 13, 37], [16, 25, 25, 61], [64, 40, 40, 9000]]
    costs = [[batch, 10 + batch, 10 + batch, 29 + batch] for batch in (1, 4, 16, 32)] + [costs[3]]
    host = host_of(costs)
    assert host.request_s == pytest.approx(3e-6)
    assert host.step_s == pytest.approx(49e-6)
    assert host_of([[8, 1, 2, 3]]).step_s == pytest.approx(6e-6)


def test_a_measured_data_sheet_is_raised_to_what_the_kernels_reached() -> None:
    slow = DataSheet(name="mine", memory_gib=8, bandwidth_gb_s=1.0, bf16_tflop_s=0.001, fp32_tflop_s=0.001)
    header = HEADER.model_copy(update={"data_sheet": slow})
    timings = [Timing("qkv", (256,), 400.0, "row"), Timing("norm", (256,), 90.0, "row")]
    raised = with_floors_below(timings, header).data_sheet
    assert raised is not None
    flops = 2 * 256 * 256 * (4 + 2 * 2) * 64
    assert raised.bf16_tflop_s == pytest.approx(flops / 400e-6 / 1e12, rel=1e-3)
    assert raised.bandwidth_gb_s == pytest.approx(256 * 4 * 256 * 2 / 90e-6 / 1e9, rel=1e-3)
    assert with_floors_below(timings, HEADER) == HEADER
