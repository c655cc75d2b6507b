"""The tile of a linear layer, found in its points."""

from __future__ import annotations

import pytest

from llmsim.calibrate.tiles import best_tile
from llmsim.sim.cost_model.tile_curve import TileCurve

SIZES = (*range(1, 17), *range(32, 2049, 16))


def steps(tile: int) -> dict[tuple[int, ...], float]:
    """Times that rise in steps of a tile."""
    return {(size,): 40.0 + 10.0 * -(-size // tile) for size in SIZES}


@pytest.mark.parametrize("tile", [32, 64, 128, 256])
def test_with_the_tile_that_is_found_any_point_is_told_from_its_neighbours(tile):
    points = steps(tile)
    found = best_tile(points)
    assert 1 < found <= tile
    for size in SIZES[1:-1]:
        others = {shape: time for shape, time in points.items() if shape != (size,)}
        assert TileCurve(others, lambda _: 1.0, tile=found).at((size,))[0] == points[size,]


def test_where_points_are_far_apart_the_whole_tile_is_found():
    edges = [size for edge in range(0, 2048, 128) for size in (edge + 1, edge + 48, edge + 128)]
    assert best_tile({(size,): 40.0 + 10.0 * -(-size // 128) for size in edges}) == 128


def test_a_straight_line_has_none():
    assert best_tile({(size,): 40.0 + 0.1 * size for size in SIZES}) == 1
