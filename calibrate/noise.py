"""Kernels whose repeats differ too much for a fit to mean anything."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ..sim.cost_model.timings import Timing

NOISY = 0.3
"""Interquartile range over median, at half of a kernel's points: beyond, the device was busy with something else."""


def noisy_kernels(timings: Sequence[Timing]) -> dict[str, float]:
    """The kernels that are, and the typical spread of their repeats as a share of the time."""
    spreads: dict[str, list[float]] = {}
    for timing in timings:
        if timing.spread_us is not None and timing.repeats:
            spreads.setdefault(timing.kernel, []).append(timing.spread_us / timing.time_us)
    typical = {kernel: median(found) for kernel, found in spreads.items()}
    return {kernel: spread for kernel, spread in typical.items() if spread > NOISY}


def noise_warning(timings: Sequence[Timing]) -> str | None:
    """One sentence that names them; None where all is quiet."""
    noisy = noisy_kernels(timings)
    if not noisy:
        return None
    named = ", ".join(f"{kernel} ({spread:.0%})" for kernel, spread in noisy.items())
    return f"too noisy to fit: repeats of {named} spread by more than {NOISY:.0%}; measure again on a quieter device"
