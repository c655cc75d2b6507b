"""One run: the scenario's traffic through the simulated engine, into a result folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from .. import __version__
from ..policies.core.config import EngineConfig
from ..policies.core.estimator import StepTimeEstimator
from ..policies.core.journal import JournalWriter
from ..policies.core.records import Status
from ..policies.core.workload import Workload
from ..sim.driver import SimDriver
from ..sim.executor import SimExecutor
from ..sim.fragmentation import KVLayout
from ..sim.latencies import Latencies, Slo
from ..sim.metrics import DATA_SHEET, RunFacts, Summary, summarize
from ..sim.recorder import Recorder
from ..sim.swap_figures import HostFacts
from ..sim.warmup import mser5
from .assembly import NS_PER_S, Assembly
from .policy_watch import Watchdog
from .preset_policies import PolicySpecs, departures
from .recording import open_journal, recording
from .results import ResultFolder
from .swapping import swaps
from .warm_cache import warm_up
from .workloads.building import build_workload


def run_into(
    assembly: Assembly,
    target: Path,
    *,
    force: bool = False,
    journal: bool = False,
    warn: Callable[[str], None],
    on_progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Carry the scenario out, write the result folder `target` and return the summary.

    `on_progress(now_ns, num_ended)` is called now and then. Nothing is left behind where it raises: ScenarioError for
    a mistake of the user's, KeyboardInterrupt.
    """
    result = ResultFolder(target, force=force)
    workload = build_workload(assembly.scenario, warn)
    assembly = settled(assembly, warn)
    with result as folder:
        recorder = Recorder(folder.path)
        log = open_journal(folder.path, assembly) if journal else None
        summary = simulate(assembly, workload, recorder, log=log, on_progress=on_progress)
        folder.write_summary(summary)
        folder.write_scenario(assembly.resolved())
    return summary


def simulate(
    assembly: Assembly,
    workload: Workload,
    recorder: Recorder,
    *,
    log: JournalWriter | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    cost_model: StepTimeEstimator | None = None,
) -> Summary:
    """Play a workload and return the summary of its records; recorder and log are closed. Raises ScenarioError.

    `cost_model` prices the steps in place of the assembly's.
    """
    cost_model, num_cached = cost_model or assembly.cost_model(), 0
    asked = cost_model if log is None else log.hear(cost_model)
    core = assembly.core(asked)
    executor = SimExecutor(cost_model, assembly.host_link)
    with recording(assembly, core, recorder, log):
        if assembly.scenario.run.cache == "warm":
            num_cached = warm_up(core, assembly, workload, cost_model, on_progress, log, asked)
        driver = SimDriver(
            core,
            executor,
            workload,
            recorder,
            frontend=assembly.frontend(),
            warmup_ns=assembly.warmup_ns,
            journal=log,
            on_progress=on_progress,
        )
        with Watchdog(core):
            driver.run()
    return summarize(recorder, replace(facts(assembly, num_cached), step_time_from=executor.shares.summary()))


def settled(assembly: Assembly, warn: Callable[[str], None]) -> Assembly:
    """The assembly with a warm-up in seconds: `auto` is found by MSER-5 on the TTFTs of a run that keeps nothing."""
    if assembly.scenario.run.warmup_s != "auto":
        return assembly
    pilot, recorder = assembly.with_warmup(0.0), Recorder()
    simulate(pilot, build_workload(pilot.scenario, lambda _: None), recorder)
    requests = recorder.requests()
    finished = requests.where(requests.having(Status.FINISHED))
    order = np.argsort(finished.sent_ns, kind="stable")
    cut = mser5(Latencies(finished).ttft_s[order])
    if cut is None:
        warn("run.warmup_s: the run is too short to find its warm-up, or never settles: nothing is cut")
    return assembly.with_warmup(float(finished.sent_ns[order][cut]) / NS_PER_S if cut else 0.0)


def facts(assembly: Assembly, num_cached_blocks: int = 0) -> RunFacts:
    """What a summary tells of a run beside its records, which began with so many blocks in the cache."""
    scenario, budget = assembly.scenario, assembly.budget
    block_bytes, is_swapping = budget.kv_bytes_per_token * budget.block_size, swaps(assembly.policies, assembly.folders)
    return RunFacts(
        scenario=scenario.name,
        seed=scenario.run.seed,
        version=__version__,
        memory=assembly.memory(),
        usable_blocks=assembly.config.num_blocks - 1,
        preset=assembly.engine.preset,
        model=scenario.model,
        gpu=scenario.hardware.gpu or assembly.gpu.name,
        priced_by=scenario.hardware.profile or DATA_SHEET,
        tensor_parallel=scenario.hardware.tensor_parallel,
        departures=departures(scenario) | _reservation(assembly),
        warmup_ns=assembly.warmup_ns,
        cache=scenario.run.cache,
        num_cached_blocks=num_cached_blocks,
        closed_loop=scenario.workload.num_clients is not None,
        slo=Slo(**scenario.slo.model_dump()),
        kv_layout=_kv_layout(assembly.config),
        host=HostFacts(assembly.config.num_host_blocks, block_bytes, assembly.host_link) if is_swapping else None,
    )


def _kv_layout(config: EngineConfig) -> KVLayout:
    is_contiguous = config.kv_reservation == "contiguous"
    return KVLayout(config.block_size, shares_blocks=config.enable_prefix_caching, is_contiguous=is_contiguous)


def _reservation(assembly: Assembly) -> PolicySpecs:
    """What no preset does: KV memory that is not paged stands beside the policies that are not the preset's own."""
    reservation = assembly.config.kv_reservation
    return {} if reservation == "paged" else {"kv_reservation": {"name": reservation}}
