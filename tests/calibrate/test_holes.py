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
