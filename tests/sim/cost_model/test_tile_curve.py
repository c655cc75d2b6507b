"""Curves of linear layers, which rise in the steps of a tile."""

from __future__ import annotations

import pytest

from llmsim.sim.cost_model.curve_grid import Basis
from llmsim.sim.cost_model.tile_curve import TileCurve, share_between

POINTS = {(16,): 10.0, (64,): 12.0, (80,): 20.0, (256,): 50.0}


def curve(tile: int) -> TileCurve:
    """Of the points, with such tiles."""
    return TileCurve(POINTS, lambda size: float(size), derived={(80,)}, tile=tile)


@pytest.mark.parametrize("tile", [1, 64])
def test_a_measured_point_is_exact(tile):
    assert curve(tile).at((64,)) == (12.0, Basis.MEASURED)
    assert curve(tile).at((80,)) == (20.0, Basis.INTERPOLATED)


def test_within_a_tile_time_is_linear():
    assert curve(64).at((40,)) == (pytest.approx(11.0), Basis.INTERPOLATED)


def test_between_tiles_time_rises_at_their_edges():
    assert curve(64).at((65,)) == (20.0, Basis.INTERPOLATED)
    assert [curve(64).at((size,))[0] for size in (127, 128)] == [20.0, 20.0]
    assert curve(64).at((129,))[0] == curve(64).at((192,))[0] == pytest.approx(35.0)


def test_a_tile_of_one_is_linear_throughout():
    assert curve(1).at((72,)) == (pytest.approx(16.0), Basis.INTERPOLATED)
    assert share_between(10, 20, 13, 1) == pytest.approx(0.3)


def test_beyond_the_ends_it_is_as_any_curve():
    assert curve(64).at((512,)) == (pytest.approx(100.0), Basis.EXTRAPOLATED)
    assert curve(64).at((8,)) == (10.0, Basis.EXTRAPOLATED)
