"""Whether repeats of a kernel agree well enough for a fit."""

from __future__ import annotations

from llmsim.calibrate.noise import noise_warning, noisy_kernels
from llmsim.sim.cost_model.timings import Timing


def timing(kernel: str, size: int, spread_us: float | None, repeats: int = 9) -> Timing:
    return Timing(kernel, (size,), 100.0, "t.csv", repeats, spread_us)


def test_a_kernel_is_noisy_where_half_of_its_points_spread() -> None:
    quiet = [timing("norm", size, 5.0) for size in (1, 2)] + [timing("norm", 3, 400.0)]
    loud = [timing("rope", size, 40.0) for size in (1, 2)] + [timing("rope", 3, 1.0)]
    assert noisy_kernels([*quiet, *loud]) == {"rope": 0.4}
    assert noise_warning([*quiet, *loud]) == (
        "too noisy to fit: repeats of rope (40%) spread by more than 30%; measure again on a quieter device"
    )


def test_spreads_that_nobody_recorded_say_nothing() -> None:
    assert noise_warning([timing("norm", 1, None), timing("norm", 2, 90.0, repeats=0)]) is None
