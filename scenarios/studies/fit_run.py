"""`llmsim calibrate fit-run`: a GPU's efficiencies, overheads and residuals out of measured runs, tried on others.

Whoever has benchmark results of an engine but no kernel profile gets a cost model from them. What was fitted is said as
keys of a scenario's `hardware`, and is only worth what the error on requests or runs says that the fit has not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ...calibrate.comparison import Errors, latency_errors, measured_times
from ...calibrate.fit_parameters import HOST, KNOWN
from ...calibrate.runs.measured_run import MeasuredRun
from ..assembly import Assembly
from ..errors import ScenarioError
from ..section import suggestion
from ..writable import check_file
from .fitted_replay import FittedHardware, fit_hardware, fitted_assembly
from .measured_replay import replay
from .run_parts import Part, Warmup

DEFAULT_PARAMETERS = ("weights", "bf16")
WITH_PROFILE = ("decode_residual", "prefill_residual")


@dataclass(frozen=True, slots=True)
class Tried:
    """Errors of the fitted hardware on requests that the fit has not seen (or has)."""

    what: str
    errors: Errors
    num_requests: int
    before: Errors
    """Of the hardware as it was before the fit."""


@dataclass(frozen=True, slots=True)
class RunFit:
    """What a fit to runs found, and how it did."""

    hardware: dict[str, Any]
    """Keys of a scenario's `hardware`."""
    found: FittedHardware
    seen: list[Tried]
    unseen: list[Tried]

    def as_json(self) -> dict[str, Any]:
        """Everything as one JSON object."""
        told: dict[str, Any] = {"hardware": self.hardware, "fit": self.found.as_json()}
        for name, tried in (("seen", self.seen), ("unseen", self.unseen)):
            told[name] = [
                {"what": one.what, "num_requests": one.num_requests, "errors": one.errors, "errors_before": one.before}
                for one in tried
            ]
        return told

    def yaml(self) -> str:
        """The `hardware` section, to be used as `--scenario` or pasted into one."""
        runs = ", ".join(one.what for one in self.seen)
        head = f"# Fitted by llmsim calibrate fit-run to {runs}.\n"
        return head + yaml.safe_dump({"hardware": self.hardware}, sort_keys=False)


def parameter_names(text: str | None, assembly: Assembly) -> tuple[str, ...]:
    """The parameters to fit: those named, separated by commas, or the usual ones. Raises ScenarioError."""
    has_profile = assembly.scenario.hardware.profile is not None
    if text is None:
        return WITH_PROFILE if has_profile else DEFAULT_PARAMETERS
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in KNOWN:
            raise ScenarioError(f"--fit {text}", None, f"'{name}' is unknown; {suggestion(name, KNOWN)}")
        if has_profile and name not in ("residual", *WITH_PROFILE):
            raise ScenarioError(f"--fit {text}", None, f"a profile has measured times in place of {name}")
    return names


def fit_run(
    trials: Sequence[tuple[MeasuredRun, Assembly]],
    tests: Sequence[tuple[MeasuredRun, Assembly]],
    names: Sequence[str],
    part: Part | None,
    warmup: Warmup,
    warn: Callable[[str], None],
) -> RunFit:
    """Fit to the runs (or a part of their requests) and try on the other requests and the test runs.

    On a test run of another GPU only what the host takes is carried over. Raises CannotTell.
    """
    _check_one_gpu(trials)
    masks = [_after(run, warmup) & (part.of(run) if part else True) for run, _ in trials]
    fitted = [(run, assembly, mask) for (run, assembly), mask in zip(trials, masks, strict=True)]
    found = fit_hardware(fitted, names, (), warn)
    seen = [_tried(run, assembly, found, mask, _told(run, part)) for run, assembly, mask in fitted]
    unseen = []
    if part is not None:
        others = [(run, assembly, _after(run, warmup) & ~part.of(run)) for run, assembly in trials]
        unseen = [_tried(run, assembly, found, mask, f"the others of {run.source}") for run, assembly, mask in others]
    gpu = trials[0][1].gpu.name
    unseen += [_test(run, assembly, found, gpu, warmup, warn) for run, assembly in tests]
    assembly = fitted_assembly(trials[0][1], found.values)
    hardware = assembly.scenario.hardware.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return RunFit(hardware, found, seen, unseen)


def _check_one_gpu(trials: Sequence[tuple[MeasuredRun, Assembly]]) -> None:
    first, gpu = trials[0][0], trials[0][1].gpu.name
    for run, assembly in trials:
        if assembly.gpu.name != gpu:
            says = f"is of {assembly.gpu.name}, {first.source} of {gpu}: a fit is of one GPU; --test tries it on others"
            raise ScenarioError(run.source, None, says)


def _test(
    run: MeasuredRun, assembly: Assembly, found: FittedHardware, gpu: str, warmup: Warmup, warn: Callable[[str], None]
) -> Tried:
    if assembly.gpu.name == gpu:
        return _tried(run, assembly, found, _after(run, warmup), str(run.source))
    host = {name: value for name, value in found.values.items() if name in HOST}
    carried = ", ".join(host) or "nothing"
    warn(f"{run.source} is of {assembly.gpu.name}, the fit of {gpu}: carried over is what the host takes ({carried})")
    only_host = FittedHardware(host, found.fitted)
    return _tried(run, assembly, only_host, _after(run, warmup), f"{run.source} ({carried} carried over)")


def _after(run: MeasuredRun, warmup: Warmup) -> Any:
    return run.times("arrival_s") >= warmup.seconds(run)


def _told(run: MeasuredRun, part: Part | None) -> str:
    return str(run.source) if part is None else f"{part.text} of {run.source}"


def _tried(run: MeasuredRun, assembly: Assembly, found: FittedHardware, of: Any, what: str) -> Tried:
    measured = measured_times(run)
    fitted, before = (replay(one, run).times() for one in (fitted_assembly(assembly, found.values), assembly))
    errors = [latency_errors(measured, times, of) for times in (fitted, before)]
    return Tried(what, errors[0], int(np.sum(of)), errors[1])


def check_hardware(path: Path, *, force: bool) -> None:
    """ScenarioError where the file is there already, or cannot be written."""
    if path.exists() and not force:
        raise ScenarioError(path, None, "is there already; --force replaces it")
    check_file(path)


def write_hardware(fit: RunFit, path: Path, *, force: bool) -> None:
    """Write the fitted `hardware` section; ScenarioError as of `check_hardware`."""
    check_hardware(path, force=force)
    path.write_text(fit.yaml(), encoding="utf-8")


def of_engine(overrides: Sequence[str]) -> list[str]:
    """The overrides that hold for runs of other hardware too: all but those of `hardware`."""
    return [override for override in overrides if not override.strip().startswith("hardware.")]
