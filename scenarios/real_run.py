"""One run on the real engine: the scenario's traffic through the same core, on a device, into a result folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..policies import registry
from ..policies.conformance import requirements
from ..policies.core.bookkeeping import Recorder as Records
from ..policies.core.config import Policies
from ..policies.core.engine import EngineCore
from ..policies.core.estimator import StepTimeEstimator
from ..policies.core.journal import JournalWriter
from ..policies.core.workload import Workload
from ..real_engine.contract import Executor, StepFailed
from ..real_engine.driver import WallClockDriver
from ..real_engine.measured_steps import MeasuredSteps
from ..real_engine.wall_clock import WallClock
from ..sim.driver import SimDriver
from ..sim.metrics import DEVICE, RunFacts, Summary, summarize
from ..sim.recorder import Recorder
from .assembly import Assembly, assemble
from .errors import ScenarioError
from .heating import heat_up
from .policy_watch import Watchdog
from .real_options import Clock
from .real_setup import RealSetup, freed, real_engine_asked
from .recording import open_journal, recording
from .results import ResultFolder
from .run import facts
from .stopping import stopped_by_signals
from .unrecorded import Unrecorded
from .warm_cache import pass_before
from .workloads.building import build_workload

if TYPE_CHECKING:
    from ..real_engine.building import BuiltEngine

Progress = Callable[[int, int], None]
MEASURED = {"measured": 1.0, "interpolated": 0.0, "extrapolated": 0.0, "data_sheet": 0.0}


def run_for_real(
    setup: RealSetup,
    target: Path,
    *,
    force: bool = False,
    journal: bool = False,
    warn: Callable[[str], None],
    on_progress: Progress | None = None,
) -> Summary:
    """Carry the scenario out on its device, write the result folder `target` and return the summary.

    In real time the first Ctrl-C ends it at the end of a step: the folder is whole, and the summary's `interrupted` is
    true. Before the run begins it raises. Nothing is left behind where it raises: ScenarioError, KeyboardInterrupt.
    """
    assembly = setup.assembly
    result = ResultFolder(target, force=force)
    workload = build_workload(assembly.scenario, warn)
    estimator = _estimator(assembly, warn)
    built = _built(setup, warn)
    with freed(built.executor), result as folder:
        recorder = Recorder(folder.path)
        log = open_journal(folder.path, assembly) if journal else None
        served = serve(setup, built.executor, workload, recorder, log, estimator, on_progress)
        summary = summarize(recorder, _facts(setup, built, served))
        folder.write_summary(summary)
        folder.write_scenario(assembly.resolved())
    return summary


class Served(NamedTuple):
    """What came of a run beside its records."""

    interrupted: bool
    num_cached_blocks: int
    """In the prefix cache when it began."""


def serve(
    setup: RealSetup,
    executor: Executor,
    workload: Workload,
    recorder: Recorder,
    log: JournalWriter | None = None,
    estimator: StepTimeEstimator | None = None,
    on_progress: Progress | None = None,
) -> Served:
    """Play a workload; recorder and log are closed. Raises ScenarioError, and KeyboardInterrupt before it begins."""
    assembly, num_cached = setup.assembly, 0
    asked = estimator if estimator is None or log is None else log.hear(estimator)
    core = _core(assembly, asked)
    try:
        with recording(assembly, core, recorder, log):
            with Watchdog(heated := _core(assembly, estimator)):
                heat_up(heated, executor, compiles=setup.found.is_gpu)
            if assembly.scenario.run.cache == "warm":
                with pass_before(core, before := _core(assembly, asked), assembly, log):
                    _serve_before(setup, before, executor, workload, log, on_progress)
                num_cached = core.kv_cache.index.num_evictable
            with Watchdog(core):
                driver = _driven(setup, core, executor, workload, recorder, log, on_progress)
            return Served(driver is not None and driver.interrupted, num_cached)
    except StepFailed as error:
        raise ScenarioError(assembly.scenario.source, "engine", str(error)) from error


def _core(assembly: Assembly, estimator: StepTimeEstimator | None) -> EngineCore:
    return EngineCore(assembly.config, Policies.of(assembly.policies, assembly.folders, estimator), tells_grants=True)


def _serve_before(
    setup: RealSetup,
    before: EngineCore,
    executor: Executor,
    workload: Workload,
    log: JournalWriter | None,
    on_progress: Progress | None,
) -> None:
    """Serve the traffic on the run's own clock and record nothing. Raises KeyboardInterrupt where it was stopped."""
    driver = _driven(setup, before, executor, workload, Unrecorded(), log, on_progress)
    if driver is not None and driver.was_stopped:
        raise KeyboardInterrupt


def _driven(
    setup: RealSetup,
    core: EngineCore,
    executor: Executor,
    workload: Workload,
    recorder: Records,
    log: JournalWriter | None,
    on_progress: Progress | None,
) -> WallClockDriver | None:
    """Drive the core until all have ended; the driver of a run in real time, None in virtual time."""
    frontend, warmup_ns = setup.assembly.frontend(), setup.assembly.warmup_ns
    if setup.options.clock == Clock.VIRTUAL:
        SimDriver(
            *(core, MeasuredSteps(executor, _host_clock(setup)), workload, recorder),
            frontend=frontend,
            warmup_ns=warmup_ns,
            journal=log,
            leaps=False,
            on_progress=on_progress,
        ).run()
        return None
    driver = WallClockDriver(
        *(core, executor, workload, recorder),
        clock=WallClock(),
        frontend=frontend,
        warmup_ns=warmup_ns,
        journal=log,
        on_progress=on_progress,
    )
    with stopped_by_signals(driver.stop):
        driver.run()
    return driver


def _built(setup: RealSetup, warn: Callable[[str], None]) -> BuiltEngine:
    scenario, options = setup.assembly.scenario, setup.options
    with real_engine_asked(scenario):
        from ..real_engine.building import build_engine
        from ..real_engine.devices import compute_on

        compute_on(options.threads)
        return build_engine(
            *(setup.source, setup.assembly.config, setup.found),
            dtype=setup.device.dtype,
            backend=options.kernels,
            outputs=scenario.run.outputs,
            seed=scenario.run.seed,
            random=not setup.has_weights,
            warn=warn,
            is_virtual=options.clock == Clock.VIRTUAL,
        )


def _host_clock(setup: RealSetup) -> Callable[[], int]:
    """What times the host's part of a step in virtual time: on a CPU as the device's."""
    from ..real_engine.streams import host_clock

    return time.perf_counter_ns if setup.found.is_gpu else host_clock()


def _estimator(assembly: Assembly, warn: Callable[[str], None]) -> StepTimeEstimator | None:
    """What steps cost, where a policy asks for it: what the simulator takes on the scenario's own hardware."""
    asking = [
        f"policies.{kind} '{spec['name']}'"
        for kind, spec in assembly.policies.items()
        if "step_time" in requirements(registry.find(kind, spec["name"], assembly.folders))
    ]
    if not asking:
        return None
    hardware = assembly.scenario.hardware
    warn(f"{', '.join(asking)} goes by predicted step times, those of {hardware.profile or hardware.gpu}")
    return assemble(assembly.scenario).cost_model()


def _facts(setup: RealSetup, built: BuiltEngine, served: Served) -> RunFacts:
    """What a summary tells beside the records."""
    from ..real_engine.devices import num_threads, versions

    real = {
        "engine": "real",
        "device": setup.device.name,
        "kernels": built.kernels,
        "dtype": setup.device.dtype,
        "weights": "loaded" if setup.has_weights else "random",
        "outputs": setup.assembly.scenario.run.outputs,
        "clock": str(setup.options.clock),
        **({} if setup.found.is_gpu else {"threads": num_threads()}),
        **versions(),
        "interrupted": served.interrupted,
    }
    told = facts(setup.assembly, served.num_cached_blocks)
    return replace(told, gpu=setup.device.name, priced_by=DEVICE, step_time_from=MEASURED, real=real)
