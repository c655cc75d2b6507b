"""The groups of rows that a CPU's library multiplies matrices in."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from llmsim.calibrate.fit import fit
from llmsim.calibrate.row_groups import best_group, rows_left_over
from llmsim.sim.cost_model.timings import Shape
from llmsim.tests.support.profiles import table

SIZES = (*range(1, 17), 18, 20, 21, 22, 23, 24, 28, 32, 35, 40, 45, 48, 56, 57, 59, 64, 96, 128, 256)


def points(extra: tuple[float, ...], noise: float = 0.0, seed: int = 0) -> dict[Shape, float]:
    """A launch, so much a row, and so much for those left over."""
    random = Random(seed)
    return {
        (size,): (100 + 5 * size + extra[size % len(extra)]) * random.uniform(1 - noise, 1 + noise) for size in SIZES
    }


@pytest.mark.parametrize("extra", [(0.0, 20.0, 20.0, 45.0), (0.0, 30.0, 30.0, 30.0, 30.0, 90.0, 90.0, 90.0)])
def test_the_group_and_what_is_left_over_are_found(extra: tuple[float, ...]) -> None:
    assert best_group(points(extra)) == len(extra)
    assert rows_left_over(points(extra), len(extra)) == pytest.approx(extra, abs=1e-3)
    noisy = points(extra, noise=0.01)
    assert best_group(noisy) == len(extra)
    assert rows_left_over(noisy, len(extra)) == pytest.approx(extra, abs=8)


def test_a_line_has_no_groups_however_noisy() -> None:
    assert best_group({(size,): 128.0 + 4 * size for size in SIZES}) is None
    for seed, noise in product(range(30), (0.01, 0.03)):
        assert best_group(points((0.0,), noise, seed)) is None


def test_few_points_say_nothing() -> None:
    few = {(size,): 100.0 + 5 * size + 20 * (size % 4 > 0) for size in (1, 2, 4, 6, 8, 9, 12, 16)}
    assert best_group(few) is None
    assert rows_left_over(few, 4) is None


def test_only_a_cpus_rows_are_looked_at() -> None:
    made = table()
    others = [timing for timing in made.timings if timing.kernel != "qkv"]
    like = next(timing for timing in made.timings if timing.kernel == "qkv")
    qkv = [
        like._replace(shape=shape, time_us=us / 10, where=f"qkv at {shape}")
        for shape, us in points((0.0, 20.0, 20.0, 45.0)).items()
    ]
    gpu = replace(made, timings=[*others, *qkv])
    cpu = replace(gpu, header=made.header.model_copy(update={"threads": 1}))
    assert fit(gpu).header.row_groups == {}
    found = fit(cpu).header
    assert found.row_groups == {"qkv": pytest.approx((0.0, 2.0, 2.0, 4.5), abs=1e-3)}
    assert "qkv" not in found.tiles
    assert found.fit is not None
    held_out = found.fit.kernels["qkv"].held_out
    assert held_out is not None
    assert held_out.median < 0.001
