"""The policies of a run: those that the scenario names, or an engine key sets, else those of the preset."""

from __future__ import annotations

from .errors import ScenarioError
from .schema import Policies, Scenario

PolicySpecs = dict[str, dict[str, object]]
"""By kind, each a name and its parameters."""


def resolve_policies(scenario: Scenario) -> PolicySpecs:
    """One policy a kind; raises ScenarioError where an engine key and a policy say different things.

    vLLM's own: under fcfs the newest of the running gives way, under priority the least urgent.
    """
    specs: PolicySpecs = {
        "scheduling": {"name": scenario.engine.scheduling_policy or "fcfs"},
        "chunk_size": _chunk_size_of_engine(scenario),
        "eviction": {"name": "lru"},
        "preemption": {"name": "newest"},
        "batching": {"name": "unified"},
    }
    given = scenario.policies.given()
    specs.update(given)
    if specs["scheduling"]["name"] == "priority" and "preemption" not in given:
        specs["preemption"] = {"name": "least_urgent"}
    _check_precedence(scenario, specs)
    return specs


def departures(scenario: Scenario) -> PolicySpecs:
    """The policies that differ from what the preset itself does under the scenario's engine keys."""
    own = scenario.model_copy(update={"policies": Policies()})
    preset = resolve_policies(own)
    return {kind: spec for kind, spec in resolve_policies(scenario).items() if spec != preset[kind]}


def _chunk_size_of_engine(scenario: Scenario) -> dict[str, object]:
    threshold = scenario.engine.long_prefill_token_threshold
    return {"name": "threshold", "tokens": threshold} if threshold else {"name": "unlimited"}


def _check_precedence(scenario: Scenario, specs: PolicySpecs) -> None:
    """An engine key that names a policy sets it; giving both differently is an error."""
    key, name = scenario.engine.scheduling_policy, specs["scheduling"]["name"]
    if key and name != key:
        message = f"'{name}' differs from engine.scheduling_policy '{key}'; give one of them"
        raise ScenarioError(scenario.source, "policies.scheduling.name", message)
    threshold = scenario.engine.long_prefill_token_threshold
    if threshold and specs["chunk_size"] != _chunk_size_of_engine(scenario):
        message = (
            f"'{specs['chunk_size']['name']}' differs from engine.long_prefill_token_threshold {threshold}, "
            "which is a chunk size too; give one of them"
        )
        raise ScenarioError(scenario.source, "policies.chunk_size.name", message)
