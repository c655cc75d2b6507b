"""A correction learned from one run's steps, tried on another run: with it and without, steps and latencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ...calibrate.loop.correcting import learned
from ...calibrate.loop.recorded import PricedSteps, RecordedStep, priced
from ...calibrate.loop.verdicts import METRICS, STATISTICS, Figures, figures_of
from ...policies.core.estimator import StepTimeEstimator
from ...sim.cost_model.correction import CorrectedCostModel, Kind
from ...sim.metrics import Summary
from ...sim.recorder import Recorder
from ..run import simulate
from ..workloads.building import build_workload
from .loop_decisions import recorded_steps
from .loop_twin import Twin

Warn = Callable[[str], None]


class Corrected(NamedTuple):
    """What came of it."""

    figures: dict[str, Any]
    steps: dict[Kind, tuple[PricedSteps, PricedSteps]]
    """Of the run that the correction was not learned from: without it, with it."""


def tried(steps: Sequence[RecordedStep], twin: Twin, measured: Summary, result: Path, warn: Warn) -> Corrected:
    """Learn from `steps` and try it on the run of `twin` that stands in `result`."""
    plain = twin.assembly.cost_model()
    lines = learned(steps, plain)
    unseen, replayed = recorded_steps(result)
    mended = priced(unseen, CorrectedCostModel(plain, lines))
    both = {kind: (found, mended[kind]) for kind, found in priced(unseen, plain).items()}
    model = CorrectedCostModel(plain, lines)
    without, corrected = (_simulated(twin, cost_model, warn) for cost_model in (plain, model))
    figures = {
        "seed": twin.assembly.scenario.run.seed,
        "replay_difference": replayed.difference,
        "lines": {kind: asdict(line) for kind, line in lines.items()},
        "steps": {kind: [found.errors()._asdict() for found in pair] for kind, pair in both.items()},
        "num_steps": model.num_corrected + model.num_outside,
        "num_outside": model.num_outside,
        "latencies": _latencies(figures_of(measured), without, corrected),
    }
    return Corrected(figures, both)


def _simulated(twin: Twin, cost_model: StepTimeEstimator, warn: Warn) -> Figures:
    workload = build_workload(twin.assembly.scenario, warn)
    return figures_of(simulate(twin.assembly, workload, Recorder(), cost_model=cost_model))


def _latencies(measured: Figures, without: Figures, corrected: Figures) -> dict[str, Any]:
    return {
        metric: {
            name: {
                "measured": measured[metric][name],
                "without": _error(measured[metric][name], without[metric][name]),
                "with": _error(measured[metric][name], corrected[metric][name]),
            }
            for name in STATISTICS
        }
        for metric in METRICS
    }


def _error(measured: float | None, simulated: float | None) -> float | None:
    return simulated / measured - 1 if measured and simulated is not None else None
