"""Holes in attention's grid."""

from __future__ import annotations

from itertools import product

import pytest

from llmsim.calibrate.holes import fill

GRID = {
    (q, kv, n, c): 1.0 * q + kv + n + c for q, kv, n, c in product((16, 32, 64), (0, 8, 16), (1, 2, 4), (64, 128, 256))
}
DECODES = {(0, 0, n, c): float(n * c) for n, c in product((1, 2, 4), (64, 128, 256))}


def without(points, *shapes):
    """The points but these."""
    return {shape: time for shape, time in points.items() if shape not in shapes}


def test_a_full_grid_has_no_holes():
    assert fill(GRID) == {}


def test_a_hole_is_filled_from_the_axes_around_it():
    hole = (32, 8, 2, 128)
    assert fill(without(GRID, hole)) == {hole: pytest.approx(GRID[hole])}


def test_a_kink_along_one_axis_does_not_spoil_a_hole():
    hole = (32, 8, 2, 128)
    kinked = {shape: time + 1000 * (shape[3] == 256) for shape, time in GRID.items()}
    assert fill(without(kinked, hole))[hole] == pytest.approx(GRID[hole])


def test_decodes_lie_between_batches_that_read_as_much():
    hole = (0, 0, 2, 128)
    cliff = {shape: time if time <= 256 else 50 * time for shape, time in DECODES.items()}
    assert fill(without(cliff, hole))[hole] == pytest.approx(256.0)


def test_what_lies_outside_on_all_axes_but_one_is_left_alone():
    assert fill(without(GRID, (16, 0, 1, 128))) == {}


def cached(num: int, context: int) -> float:
    """A cliff where the reads no longer fit a cache, and batches that differ from one another in their own way."""
    reads = num * context
    return (reads if reads <= 512 else 5 * reads) * (1.3 if num in (2, 8) else 1.0) + 20


CLIFF = {(0, 0, n, c): cached(n, c) for n, c in product((1, 2, 4, 8, 16), (16, 32, 64, 128, 256, 512))}


@pytest.mark.parametrize("hole", [(0, 0, 4, 128), (0, 0, 8, 64), (0, 0, 2, 256)])
def test_what_sets_a_batch_apart_is_carried_over_from_other_reads(hole):
    assert fill(without(CLIFF, hole))[hole] == pytest.approx(CLIFF[hole], rel=0.05)


@pytest.mark.parametrize("hole", [(0, 0, 1, 512), (0, 0, 16, 64)])
def test_a_batch_on_the_edge_is_told_from_the_one_that_reads_as_much(hole):
    assert fill(without(CLIFF, hole))[hole] == pytest.approx(CLIFF[hole], rel=0.05)


def test_nothing_is_carried_over_where_the_measured_points_come_out_worse_so():
    rough = {shape: time * (1.0 + 0.4 * ((7 * shape[2] + shape[3] // 64) % 3)) for shape, time in DECODES.items()}
    smooth = {shape: time for shape, time in rough.items() if shape[2] * shape[3] == 256}
    hole = (0, 0, 2, 128)
    expected = (smooth[0, 0, 1, 256] * 2 + smooth[0, 0, 4, 64]) / 3
    assert fill(without(rough, hole))[hole] == pytest.approx(expected)


def test_nothing_is_cached_before_no_queries():
    assert all(shape[0] or not shape[1] for shape in fill(without({**GRID, **DECODES}, (0, 0, 2, 128))))
