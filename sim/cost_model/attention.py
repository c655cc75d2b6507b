"""Which curve attention has, by how the engine that was measured launches it."""

from __future__ import annotations

from collections.abc import Container
from typing import TypeAlias

from .attention_curve import AttentionCurve, Points
from .curve_grid import Floor
from .profile_header import AttentionLaunches
from .separate_attention import SeparateAttention

Attention: TypeAlias = AttentionCurve | SeparateAttention


def attention_of(
    launched: AttentionLaunches, points: Points, floor: Floor, derived: Container[tuple[int, ...]] = ()
) -> Attention:
    """The curve through points of equal contexts, by (q, prior KV, decodes, mean context); `floor` takes the four."""
    if launched.launches == "separate":
        return SeparateAttention(points, floor, derived, launched.shared_us)
    return AttentionCurve(points, floor, derived)
