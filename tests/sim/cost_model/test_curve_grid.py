"""Curves through points on ragged grids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmsim.sim.cost_model.curve_grid import Basis, CurveGrid

SQUARE = {(x, y): 10.0 * x + y + 0.1 * x * y for x in (1, 4, 16) for y in (2, 8, 32)}


def floor(*shape: float) -> float:
    """Grows with each coordinate."""
    product = 1.0
    for x in shape:
        product *= x
    return product


@pytest.mark.parametrize("shape", SQUARE)
def test_a_measured_point_is_returned_exactly(shape):
    assert CurveGrid(SQUARE, floor).at(shape) == (SQUARE[shape], Basis.MEASURED)


@given(st.floats(1, 16), st.floats(2, 32))
def test_between_points_time_is_linear_along_each_axis(x, y):
    time, basis = CurveGrid(SQUARE, floor).at((x, y))
    assert time == pytest.approx(10 * x + y + 0.1 * x * y)
    assert basis == (Basis.MEASURED if (x, y) in SQUARE else Basis.INTERPOLATED)


def test_beyond_the_last_point_time_grows_as_the_floor_does():
    grid = CurveGrid(SQUARE, floor)
    assert grid.at((16, 320)) == (pytest.approx(10 * SQUARE[16, 32]), Basis.EXTRAPOLATED)
    assert grid.at((160, 320)) == (pytest.approx(100 * SQUARE[16, 32]), Basis.EXTRAPOLATED)


def test_below_the_first_point_time_is_that_of_the_first():
    assert CurveGrid(SQUARE, floor).at((1, 1)) == (SQUARE[1, 2], Basis.EXTRAPOLATED)


def test_lines_need_not_be_of_one_length():
    ragged = {(1, 1): 1.0, (1, 9): 9.0, (3, 5): 50.0}
    grid = CurveGrid(ragged, lambda x, y: 1.0)
    assert grid.at((1, 5)) == (pytest.approx(5.0), Basis.INTERPOLATED)
    assert grid.at((2, 5)) == (pytest.approx(27.5), Basis.INTERPOLATED)


def test_a_derived_point_counts_as_interpolated():
    grid = CurveGrid({(1,): 1.0, (2,): 2.0}, floor, derived={(2,)})
    assert grid.at((1,)) == (1.0, Basis.MEASURED)
    assert grid.at((2,)) == (2.0, Basis.INTERPOLATED)
