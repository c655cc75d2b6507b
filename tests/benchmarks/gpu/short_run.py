"""A short scenario on the real engine, its journal fed to a fresh core, and its tokens' times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.real_options import RealOptions
from llmsim.scenarios.real_run import run_for_real
from llmsim.scenarios.real_setup import real_setup
from llmsim.scenarios.replaying import replay
from llmsim.tests.benchmarks.gpu.checks import Check
from llmsim.tests.support.tree import ROOT

PART = "short run"
ON_A_GPU = ["model=llama-3.2-1b", "workload.rate=50", "workload.requests=200", "engine.num_gpu_blocks_override=2000"]
ON_A_CPU = ["workload.requests=12", "workload.rate=.inf"]


def short_run(device: torch.device, folder: Path) -> Iterator[Check]:
    """`scenarios/tiny-agent.yaml` in real time; all finish, and the replay is identical."""
    changes = ON_A_GPU if device.type == "cuda" else ON_A_CPU
    scenario = load_scenario(ROOT / "scenarios" / "tiny-agent.yaml", changes)
    setup = real_setup(scenario, RealOptions(device=str(device)), _unheard)
    summary = run_for_real(setup, folder / "run", journal=True, warn=_unheard)
    requests, replayed = summary["num_requests"], replay(folder / "run")
    note = f"{summary['num_steps']} steps, {summary['num_preemptions']} preemptions, {summary['kernels']} kernels"
    yield Check(PART, "requests finished, of all", requests["finished"] / sum(requests.values()), 1.0, note=note)
    same = replayed.difference is None
    note = replayed.difference or f"{replayed.num_plans} plans, {replayed.num_finished} requests"
    yield Check(PART, "replay identical", float(same), 1.0, note=note)
    yield Check(PART, "TTFT P50, ms", summary["ttft_s"]["p50"] * 1e3)
    yield Check(PART, "TPOT P50, ms", summary["tpot_s"]["p50"] * 1e3)


def _unheard(_: str) -> None:
    """Warnings are for people."""
