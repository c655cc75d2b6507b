"""Times for people."""

from __future__ import annotations


def duration_text(seconds: float) -> str:
    """`350 µs`, `12.5 ms`, `2.1 s`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds / size < 1000 else f"{seconds / size:,.0f} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
