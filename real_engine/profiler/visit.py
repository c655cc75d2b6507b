"""One visit to a step of the grid: repeated until its time is known well enough, or long enough."""

from __future__ import annotations

import time
from statistics import median
from typing import NamedTuple

import numpy as np

from ..devices import DeviceError
from .bench import StepBench
from .memory import is_out_of_memory
from .steps import TimedStep

SURE = 0.01
"""A median is known well enough when its standard error is this share of it."""
MOST_REPEATS = 40
FEWEST_REPEATS = 3


class Visit(NamedTuple):
    """What one visit measured, in microseconds."""

    step: TimedStep
    kernels: dict[str, list[list[float]]]
    """Of each kernel a list for each run: its launches, in order; empty of whole steps."""
    whole: list[float]
    """The step; empty where kernels were timed."""
    failure: str | None = None
    """It ran out of memory."""


def visit(bench: StepBench, step: TimedStep, budget_s: float, *, is_first: bool) -> Visit:
    """Time a step's kernels, or the step as a whole. `is_first`: no visit before has warmed it up.

    Raises DeviceError where it fails for another reason than memory.
    """
    try:
        bench.prepare(step)
        return _whole(bench, step, budget_s, is_first) if step.is_whole else _kernels(bench, step, budget_s, is_first)
    except AssertionError:
        raise
    except Exception as error:  # Triton's are no RuntimeErrors
        if is_out_of_memory(error):
            return Visit(step, {}, [], "out of memory")
        says = str(error).partition("\n")[0]
        raise DeviceError(f"step {step.name()}: {type(error).__name__}: {says}") from error


def _whole(bench: StepBench, step: TimedStep, budget_s: float, is_first: bool) -> Visit:
    if is_first:
        bench.whole_us()
    deadline = time.monotonic() + budget_s
    times: list[float] = []
    while not _is_enough(times, deadline):
        times.append(bench.whole_us())
    return Visit(step, {}, times)


def _kernels(bench: StepBench, step: TimedStep, budget_s: float, is_first: bool) -> Visit:
    if is_first:
        bench.watched_us()
    deadline = time.monotonic() + budget_s
    runs: list[tuple[float, dict[str, list[float]]]] = []
    while not _is_enough([whole for whole, _ in runs], deadline):
        runs.append(bench.watched_us())
    kernels: dict[str, list[list[float]]] = {}
    for _, found in runs:
        for name, times in found.items():
            kernels.setdefault(name, []).append(times)
    return Visit(step, kernels, [])


def _is_enough(times: list[float], deadline: float) -> bool:
    """Whether the median is sure, or the time is over and there is one at least."""
    if time.monotonic() > deadline:
        return bool(times)
    if len(times) < FEWEST_REPEATS:
        return False
    return len(times) >= MOST_REPEATS or standard_error(times) < SURE * median(times)


def standard_error(times: list[float]) -> float:
    """Of a median, from the interquartile range (McGill, Tukey and Larsen 1978: 1.25 R / (1.35 sqrt(n)))."""
    low, high = np.percentile(times, [25, 75])
    return float(1.25 * (high - low) / (1.35 * np.sqrt(len(times))))
