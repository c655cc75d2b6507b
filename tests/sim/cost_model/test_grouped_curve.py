"""Rows in groups, as a CPU's library multiplies them."""

from __future__ import annotations

import pytest

from llmsim.sim.cost_model.curve_grid import Basis
from llmsim.sim.cost_model.grouped_curve import GroupedCurve

EXTRA = (0.0, 5.0, 6.0, 9.0)
POINTS = {(size,): 10.0 + size + EXTRA[size % 4] * (size > 3) for size in (1, 2, 4, 5, 7, 8, 16, 32)}
CURVE = GroupedCurve(POINTS, lambda size: float(size), EXTRA)


@pytest.mark.parametrize("size", [size for (size,) in POINTS])
def test_measured_points_are_exact(size: int) -> None:
    assert CURVE.at((size,)) == (POINTS[size,], Basis.MEASURED)


@pytest.mark.parametrize(("size", "time"), [(6, 22.0), (12, 22.0), (13, 28.0), (19, 38.0), (31, 50.0)])
def test_between_them_rows_left_over_come_on_top_of_whole_groups(size: int, time: float) -> None:
    assert CURVE.at((size,)) == (pytest.approx(time), Basis.INTERPOLATED)


def test_before_the_first_group_and_beyond_the_last_it_is_a_line() -> None:
    assert CURVE.at((3,)) == (pytest.approx((12 + 14) / 2), Basis.INTERPOLATED)
    assert CURVE.at((64,)) == (pytest.approx(2 * 42.0), Basis.EXTRAPOLATED)
    assert CURVE.at((65,))[1] == Basis.EXTRAPOLATED
