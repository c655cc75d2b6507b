"""`llmsim check`: a scenario without running it."""

from __future__ import annotations

from ..scenarios.assembly import assemble
from ..scenarios.checking import check_report, print_check
from ..scenarios.loading import load_scenario
from .options import AsJson, Overrides, ScenarioPath
from .speech import people, print_json, warn


def check(scenario: ScenarioPath, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Check a scenario without running it: its keys, its trace, and whether model and KV cache fit the GPU.

    Example: llmsim check scenarios/agent.yaml --set hardware.gpu=a100-80g
    """
    assembly = assemble(load_scenario(scenario, overrides or []), warn)
    report = check_report(assembly, warn)
    print_check(assembly, report, people)
    if as_json:
        print_json(report)
