"""One run: the scenario's traffic through the simulated engine, into a result folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .. import __version__
from ..policies.core.journal import JournalWriter
from ..sim.driver import SimDriver, StallError
from ..sim.executor import SimExecutor
from ..sim.latencies import Slo
from ..sim.metrics import RunFacts, Summary, summarize
from ..sim.recorder import Recorder
from .assembly import NS_PER_S, Assembly
from .errors import ScenarioError
from .preset_policies import departures
from .results import ResultFolder
from .workloads.building import build_workload

JOURNAL = "journal.jsonl.gz"


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
    warmup_ns = round(assembly.scenario.run.warmup_s * NS_PER_S)
    with result as folder:
        recorder = Recorder(folder.path)
        log = _open_journal(folder.path, assembly) if journal else None
        try:
            driver = SimDriver(
                assembly.core(),
                SimExecutor(assembly.cost_model()),
                workload,
                recorder,
                frontend=assembly.frontend(),
                warmup_ns=warmup_ns,
                journal=log,
                on_progress=on_progress,
            )
            driver.run()
        except StallError as error:
            raise ScenarioError(assembly.scenario.source, "engine", f"the engine stalled at {error}") from None
        finally:
            recorder.close()
            if log is not None:
                log.close()
        summary = summarize(recorder, facts(assembly))
        folder.write_summary(summary)
        folder.write_scenario(assembly.resolved())
    return summary


def facts(assembly: Assembly) -> RunFacts:
    """What a summary tells of a run beside its records."""
    scenario = assembly.scenario
    return RunFacts(
        scenario=scenario.name,
        seed=scenario.run.seed,
        version=__version__,
        memory=assembly.memory(),
        usable_blocks=assembly.config.num_blocks - 1,
        preset=assembly.engine.preset,
        model=scenario.model,
        gpu=scenario.hardware.gpu,
        tensor_parallel=scenario.hardware.tensor_parallel,
        departures=departures(scenario),
        warmup_ns=round(scenario.run.warmup_s * NS_PER_S),
        slo=Slo(**scenario.slo.model_dump()),
    )


def _open_journal(folder: Path, assembly: Assembly) -> JournalWriter:
    return JournalWriter(folder / JOURNAL, assembly.config, assembly.policies, __version__)
