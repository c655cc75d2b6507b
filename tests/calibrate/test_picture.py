"""The picture of a profile."""

from __future__ import annotations

from llmsim.calibrate.picture import profile_figure
from llmsim.tests.support.profiles import CONTEXTS, fitted, us


def test_each_panel_shows_points_curves_beyond_them_and_floors():
    for axes in profile_figure(fitted()).axes:
        curves = [line for line in axes.lines if line.get_linestyle() == "-"]
        floors = [line for line in axes.lines if line.get_linestyle() == "--"]
        points = [line for line in axes.lines if line.get_marker() == "o" and len(line.get_xdata())]
        assert len(curves) == len(floors) == len(points) >= 2
        for curve, floor, point in zip(curves, floors, points, strict=True):
            assert max(curve.get_xdata()) >= 1.9 * max(point.get_xdata())
            assert all(time >= least for time, least in zip(curve.get_ydata(), floor.get_ydata(), strict=True))


def test_points_of_decodes_are_those_of_the_table():
    decode = profile_figure(fitted()).axes[1]
    points = next(line for line in decode.lines if line.get_marker() == "o" and len(line.get_xdata()))
    assert list(points.get_xdata()) == list(CONTEXTS)
    assert list(points.get_ydata()) == [us("attention", (0, 0, 1, context, context)) for context in CONTEXTS]
