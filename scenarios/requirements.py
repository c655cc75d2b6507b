"""What policies require, and whether a scenario has it: a combination that cannot work is refused before it runs."""

from __future__ import annotations

from typing import NamedTuple

from ..policies import registry
from ..policies.conformance import FEATURES, requirements
from ..policies.core.config import EngineConfig
from ..policies.finding import Folders
from .errors import ScenarioError
from .preset_policies import PolicySpecs
from .schema import Scenario
from .schema_generators import AgentSettings
from .schema_sessions import MixtureSettings


class Feature(NamedTuple):
    """One thing that a policy may require."""

    is_there: bool
    comes_with: str
    """What a scenario needs for it, in its keys."""


def features(scenario: Scenario, config: EngineConfig, specs: PolicySpecs) -> dict[str, Feature]:
    """What there is to require, and whether this scenario has it."""
    return {
        "prefix_index": Feature(config.enable_prefix_caching, COMES_WITH["prefix_index"]),
        "radix_tree": Feature(config.prefix_index == "radix_tree", COMES_WITH["radix_tree"]),
        "chunked_prefill": Feature(config.enable_chunked_prefill, COMES_WITH["chunked_prefill"]),
        "mixed_steps": Feature(_mixes(specs["batching"]), COMES_WITH["mixed_steps"]),
        "prediction": Feature(scenario.predictions.output_length is not None, COMES_WITH["prediction"]),
        "deadline": Feature(_has_deadlines(scenario), COMES_WITH["deadline"]),
        "tenant": Feature(isinstance(scenario.workload, AgentSettings | MixtureSettings), COMES_WITH["tenant"]),
        "step_time": Feature(True, COMES_WITH["step_time"]),
    }


COMES_WITH = {
    "prefix_index": "engine.enable_prefix_caching: true (preset sglang: disable_radix_cache: false)",
    "radix_tree": "engine.preset: sglang, or policies.batching.name: prefill_first",
    "chunked_prefill": "engine.enable_chunked_prefill: true (preset sglang: a chunked_prefill_size above 0)",
    "mixed_steps": "any policies.batching but prefill_first, or with its mixed_chunk: true",
    "prediction": "predictions.output_length: {error: lognormal, sigma: 0.5}",
    "deadline": "slo.ttft_s, slo.e2e_s or a workload's deadline_s",
    "tenant": "workload.type: agent or mixture",
    "step_time": "the cost model of every run",
}
"""By feature, what a scenario needs for it."""


def check_requirements(scenario: Scenario, config: EngineConfig, specs: PolicySpecs, folders: Folders) -> None:
    """Raise ScenarioError where a policy requires what the scenario, or another of its policies, does not give it."""
    given = features(scenario, config, specs)
    assert given.keys() == FEATURES.keys(), given.keys() ^ FEATURES.keys()
    for kind, spec in specs.items():
        for needed in requirements(registry.find(kind, spec["name"], folders)):
            if lacks := _lacking(needed, given, specs):
                message = f"'{spec['name']}' requires {lacks}"
                raise ScenarioError(scenario.source, f"policies.{kind}.name", message)


def _mixes(batching: dict[str, object]) -> bool:
    return batching["name"] != "prefill_first" or bool(batching.get("mixed_chunk"))


def _has_deadlines(scenario: Scenario) -> bool:
    """Whether requests have one, at least some."""
    workload = scenario.workload
    parts = [part.workload for part in workload.parts] if isinstance(workload, MixtureSettings) else [workload]
    own = any(getattr(part, "deadline_s", None) is not None for part in parts)
    return own or scenario.slo.ttft_s is not None or scenario.slo.e2e_s is not None


def _lacking(needed: str, given: dict[str, Feature], specs: PolicySpecs) -> str | None:
    """What is needed and why it is not there; None where it is."""
    if needed in given:
        feature = given[needed]
        says = f"{FEATURES[needed]} ({needed}), which comes with {feature.comes_with}"
        return None if feature.is_there else says
    kind, _, name = needed.partition(".")
    other = specs[kind]["name"]
    return None if other == name else f"policies.{kind}.name: {name}, which is '{other}' here"
