"""`llmsim describe`: a scenario in plain words."""

from __future__ import annotations

from ..scenarios.assembly import assemble
from ..scenarios.describing import describe as described
from ..scenarios.describing import print_description
from ..scenarios.loading import load_scenario
from .options import AsJson, Overrides, ScenarioPath
from .speech import people, print_json, warn


def describe(scenario: ScenarioPath, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Say in plain words what a scenario asks of the engine: batches, prefill, KV, who gives way, traffic; and memory.

    Example: llmsim describe scenarios/agent.yaml --set engine.max_num_seqs=64
    """
    description = described(assemble(load_scenario(scenario, overrides or []), warn))
    print_description(description, people)
    if as_json:
        print_json(description)
