"""How long attention takes in an engine that launches decodes and chunks of prompts apart: the two add, chunk by chunk.

Each chunk is priced by its own new and cached tokens. Chunks of one launch do not pay for launching again, which the
profile says (`shared_us`). A chunk of one token is a decode to such an engine.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from .curve_grid import Basis, Floor, Priced
from .ragged_curve import RaggedCurve

Points = Mapping[tuple[int, ...], float]


class SeparateAttention:
    """Times of attention in one layer; `points` and `floor` are by (q, prior KV, decodes, their mean context)."""

    def __init__(
        self, points: Points, floor: Floor, derived: Container[tuple[int, ...]] = (), shared_us: float = 0.0
    ) -> None:
        prefill = {shape[:2]: time for shape, time in points.items() if not shape[2]}
        decode = {shape[2:]: time for shape, time in points.items() if not shape[0]}
        apart = {shape for shape in prefill if (*shape, 0, 0) in derived}
        alone = {shape for shape in decode if (0, 0, *shape) in derived}
        self._chunks = RaggedCurve(prefill, lambda q, kv: floor(q, kv, 0, 0), apart, triangle=True) if prefill else None
        self.decode = RaggedCurve(decode, lambda n, context: floor(0, 0, n, context), alone) if decode else None
        self._shared_us = shared_us

    def at(self, q_tokens: int, kv_tokens: int, num_decodes: int, mean_context: float) -> Priced:
        """Time of one layer with one chunk, in the points' unit."""
        return self.of_chunks([(q_tokens, kv_tokens)] if q_tokens else [], num_decodes, mean_context)

    def of_chunks(self, chunks: Sequence[tuple[int, int]], num_decodes: int, mean_context: float) -> Priced:
        """The same with any number of chunks, each `(q, kv)`."""
        singles = [kv + 1 for q, kv in chunks if q == 1]
        if singles:
            context = num_decodes * mean_context + sum(singles)
            num_decodes += len(singles)
            mean_context = context / num_decodes
        parts = [self._chunk(q, kv) for q, kv in chunks if q > 1]
        shared = self._shared_us * max(len(parts) - 1, 0)
        if num_decodes:
            assert self.decode is not None, "attention without timings of decodes"
            parts.append(self.decode.at((num_decodes, mean_context)))
        if not parts:
            return 0.0, Basis.MEASURED
        basis = max(basis for _, basis in parts)
        return sum(time for time, _ in parts) - shared, max(basis, Basis.INTERPOLATED) if shared else basis

    def _chunk(self, q_tokens: int, kv_tokens: int) -> Priced:
        assert self._chunks is not None, "attention without timings of prefill"
        return self._chunks.at((q_tokens, kv_tokens))
