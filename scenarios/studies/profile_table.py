"""From what was timed to a table: a row for each kernel and shape, whole steps, and what the header says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import NamedTuple

import numpy as np

from ...calibrate.whole_steps import WholeStep
from ...policies.core.estimator import StepShape
from ...sim.cost_model.profile_header import AttentionLaunches, Host
from ...sim.cost_model.timings import BY_ROWS, Shape, Timing

DECODE, EXTEND = "decode_attention", "extend_attention"


class TimedShape(NamedTuple):
    """What a visit timed: a step by its shape, the launches of its kernels, or the step as a whole."""

    name: str
    shape: StepShape
    kernels: Mapping[str, Sequence[Sequence[float]]]
    """Of each run, the launches in order."""
    whole: Sequence[float]


class Summed(NamedTuple):
    """Many times of one thing."""

    time_us: float
    repeats: int
    spread_us: float
    """From the first quartile to the third."""


def summed(times: Sequence[float]) -> Summed:
    """Their median, how many they are, and how far they spread; to a nanosecond."""
    low, middle, high = np.percentile(times, [25, 50, 75])
    return Summed(round(float(middle), 3), len(times), round(float(high - low), 3))


def of_launches(runs: Sequence[Sequence[float]]) -> Summed:
    """A launch's time: the median of the same launch in all runs, and of these the mean over the launches of a step.

    Launches of one kernel in one step may differ for good (a norm after attention, one after the MLP: other things are
    in the caches), so that a median over all would be one of them.
    """
    table = np.array(runs)
    of_runs = summed(table.mean(axis=1).tolist())
    return of_runs._replace(time_us=round(float(np.median(table, axis=0).mean()), 3))


def timings_of(visits: Iterable[TimedShape]) -> list[Timing]:
    """Rows of a table, from all visits to all steps: a kernel's launches at one shape are one row."""
    times: dict[tuple[str, Shape], list[Sequence[float]]] = {}
    for visit in visits:
        for kernel, runs in visit.kernels.items():
            if (row := _row(kernel, visit)) is not None:
                times.setdefault(row, []).extend(runs)
    return [
        Timing(kernel, shape, found.time_us, f"{kernel} at {shape}", found.repeats, found.spread_us)
        for (kernel, shape), found in ((key, of_launches(runs)) for key, runs in sorted(times.items()))
    ]


def steps_of(visits: Iterable[TimedShape], num_layers: int) -> list[WholeStep]:
    """Whole steps, each once."""
    times: dict[str, list[float]] = {}
    shapes: dict[str, StepShape] = {}
    for visit in visits:
        if visit.whole:
            times.setdefault(visit.name, []).extend(visit.whole)
            shapes[visit.name] = visit.shape
    return [WholeStep(num_layers, shapes[name], *summed(samples)) for name, samples in sorted(times.items())]


def attention_launches(visits: Iterable[TimedShape]) -> AttentionLaunches:
    """Decodes and chunks are launched apart; what further chunks of one launch save is the median of what they did."""
    alone: dict[tuple[int, int], list[Sequence[float]]] = {}
    together: dict[tuple[tuple[int, int], ...], list[Sequence[float]]] = {}
    for visit in visits:
        if runs := visit.kernels.get(EXTEND):
            chunks = tuple((q, kv) for q, kv in visit.shape.prefill_chunks)
            target = together.setdefault(chunks, []) if len(chunks) > 1 else alone.setdefault(chunks[0], [])
            target.extend(runs)
    single = {chunk: of_launches(runs).time_us for chunk, runs in alone.items()}
    saved = [
        (sum(single[chunk] for chunk in chunks) - of_launches(runs).time_us) / (len(chunks) - 1)
        for chunks, runs in together.items()
        if all(chunk in single for chunk in chunks)
    ]
    least = min(single.values(), default=0.0)
    shared = min(max(float(np.median(saved)), 0.0), least) if saved else 0.0
    return AttentionLaunches(launches="separate", shared_us=round(shared, 3))


def host_of(costs: Sequence[Sequence[float]]) -> Host:
    """The line through (batch, core, launch, sync): microseconds of a step, and of each request in it.

    It has the median slope of all pairs (Sen 1968), since a busy machine wakes a thread late now and then.
    """
    points = sorted((cost[0], sum(cost[1:])) for cost in costs)
    slopes = [(t1 - t0) / (b1 - b0) for (b0, t0), (b1, t1) in combinations(points, 2)]
    slope = max(median(slopes), 0.0) if slopes else 0.0
    start = max(median(total - slope * batch for batch, total in points), 0.0)
    return Host(step_s=round(start / 1e6, 9), request_s=round(slope / 1e6, 9))


def _row(kernel: str, visit: TimedShape) -> tuple[str, Shape] | None:
    """Kernel and shape as a table has them; None in steps of several chunks.

    No row can tell these apart in a launch, and they are there for that launch alone.
    """
    chunks, num_decodes, context, longest, num_rows = visit.shape[:5]
    if len(chunks) > 1:
        return None
    if kernel == DECODE:
        return "attention", (0, 0, num_decodes, round(context / num_decodes), longest)
    if kernel == EXTEND:
        return "attention", (*chunks[0], 0, 0, 0)
    if kernel in BY_ROWS:
        return kernel, (num_rows,)
    return kernel, (num_decodes + sum(q for q, _ in chunks),)
