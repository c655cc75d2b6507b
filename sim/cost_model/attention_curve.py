"""How long attention takes: prefill, decodes, and both in one launch, each from its own measured points.

Decodes beside a prefill cost more than both apart, so mixed steps have a curve in four dimensions. Only where nothing
mixed was measured do the two add, and that counts as extrapolated.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Mapping, Sequence

from .curve_grid import Basis, CurveGrid, Floor
from .joined_chunks import TILE_ROWS, joined

Points = Mapping[tuple[int, ...], float]


class AttentionCurve:
    """Times of attention in one layer by (sum of q, sum of prior KV, decodes, their mean context)."""

    def __init__(self, points: Points, floor: Floor, derived: Container[tuple[int, ...]] = ()) -> None:
        """`points` by those four, those that are `derived` among them; `floor` takes the four too."""
        prefill = {shape[:2]: time for shape, time in points.items() if not shape[2]}
        decode = {shape[2:]: time for shape, time in points.items() if not shape[0]}
        mixed = {shape: time for shape, time in points.items() if shape[0] and shape[2]}
        apart = {shape[:2] for shape in prefill if (*shape, 0, 0) in derived}
        alone = {shape for shape in decode if (0, 0, *shape) in derived}
        self._prefill = CurveGrid(prefill, lambda q, kv: floor(q, kv, 0, 0), apart) if prefill else None
        self.decode = CurveGrid(decode, lambda n, context: floor(0, 0, n, context), alone) if decode else None
        self._mixed = _by_reach(mixed, floor, derived) if mixed else []
        self._reaches = [reach for reach, _ in self._mixed]

    def at(self, q_tokens: int, kv_tokens: float, num_decodes: int, mean_context: float) -> tuple[float, Basis]:
        """Time of one layer, in the points' unit. `kv_tokens` below zero are explained in `joined_chunks`."""
        if not q_tokens:
            return self._decodes(num_decodes, mean_context)
        if kv_tokens < 0:
            return self._with_fewer_pairs(q_tokens, -kv_tokens, num_decodes, mean_context)
        if not num_decodes:
            return self._prefills(q_tokens, kv_tokens)
        if self._mixed:
            i = max(bisect_right(self._reaches, mean_context) - 1, 0)
            return self._mixed[i][1].at((q_tokens, kv_tokens, num_decodes, mean_context))
        prefill, _ = self._prefills(q_tokens, kv_tokens)
        decode, _ = self._decodes(num_decodes, mean_context)
        return prefill + decode, Basis.EXTRAPOLATED

    def of_chunks(
        self, chunks: Sequence[tuple[int, int]], num_decodes: int, mean_context: float
    ) -> tuple[float, Basis]:
        """The same for several chunks, each `(q, kv)`, as the one that `joined_chunks` makes of them."""
        return self.at(*joined(chunks), num_decodes, mean_context)

    def longer(self, q_tokens: int, kv_tokens: float, mean_context: float, longest: float) -> float:
        """How much longer one decode of the longest context takes beside a chunk than one of the mean context."""
        kv_tokens = max(kv_tokens, 0)
        most, _ = self.at(q_tokens, kv_tokens, 1, longest)
        return max(most - self.at(q_tokens, kv_tokens, 1, mean_context)[0], 0.0)

    def _with_fewer_pairs(
        self, q_tokens: int, fewer: float, num_decodes: int, mean_context: float
    ) -> tuple[float, Basis]:
        """Without so many keys for each query: less by what as many cached ones would add.

        What is added first is a tile of keys, used or not, so less than a tile is taken as its part of one.
        """
        cached = max(fewer, TILE_ROWS)
        time, basis = self.at(q_tokens, 0, num_decodes, mean_context)
        more, beyond = self.at(q_tokens, cached, num_decodes, mean_context)
        return time - (more - time) * fewer / cached, max(basis, beyond, Basis.INTERPOLATED)

    def _prefills(self, q_tokens: int, kv_tokens: float) -> tuple[float, Basis]:
        assert self._prefill is not None
        return self._prefill.at((q_tokens, kv_tokens))

    def _decodes(self, num_decodes: int, mean_context: float) -> tuple[float, Basis]:
        assert self.decode is not None
        return self.decode.at((num_decodes, mean_context)) if num_decodes else (0.0, Basis.MEASURED)


def _by_reach(mixed: Points, floor: Floor, derived: Container[tuple[int, ...]]) -> list[tuple[int, CurveGrid]]:
    """Curves through the lines that begin at a context or before it, by that context.

    Tables put together from several grids have lines that begin at a short context and lines that do not: a
    short context is to be looked up on the former alone, else the latter would be extrapolated downwards.
    """
    begins: dict[tuple[int, ...], int] = {}
    for shape in mixed:
        begins[shape[:3]] = min(shape[3], begins.get(shape[:3], shape[3]))
    reaches = sorted(set(begins.values()))
    chosen = [{shape: time for shape, time in mixed.items() if begins[shape[:3]] <= reach} for reach in reaches]
    return [(reach, CurveGrid(points, floor, derived)) for reach, points in zip(reaches, chosen, strict=True)]
