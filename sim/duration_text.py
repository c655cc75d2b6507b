"""Times for people."""

from __future__ import annotations


def duration_text(seconds: float) -> str:
    """`350 µs`, `12.5 ms`, `2.1 s`."""
    rounded = float(f"{seconds:.3g}")  # first, so that 999.9 ms are a second
    if rounded >= 1000:
        return f"{seconds:,.0f} s"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if rounded >= size:
            return f"{rounded / size:.3g} {unit}"
    return f"{rounded / 1e-6:.3g} µs"
