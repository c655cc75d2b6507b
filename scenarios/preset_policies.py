"""The policies of a run: those that the scenario names, or an engine key sets, else those of the preset."""

from __future__ import annotations

from .errors import ScenarioError
from .schema import Policies, Scenario
from .schema_sglang import SglangEngine
from .schema_vllm import VllmEngine
from .sglang_policies import scheduling_of

PolicySpecs = dict[str, dict[str, object]]
"""By kind, each a name and its parameters."""

POLICY_KEYS = frozenset({"scheduling_policy", "schedule_policy", "radix_eviction_policy"})
"""Keys of the engines that are the name of a policy."""


def resolve_policies(scenario: Scenario) -> PolicySpecs:
    """One policy a kind; raises ScenarioError where an engine key and a policy say different things."""
    engine, given = scenario.engine, scenario.policies.given()
    own = _of_sglang(engine) if isinstance(engine, SglangEngine) else _of_vllm(engine)
    specs = {**own, **given}
    if isinstance(engine, VllmEngine) and specs["scheduling"]["name"] == "priority" and "preemption" not in given:
        specs["preemption"] = {"name": "least_urgent"}
    _check_precedence(scenario, specs)
    return specs


def departures(scenario: Scenario) -> PolicySpecs:
    """The policies that differ from what the preset itself does under the scenario's engine keys."""
    own = scenario.model_copy(update={"policies": Policies()})
    preset = resolve_policies(own)
    return {kind: spec for kind, spec in resolve_policies(scenario).items() if spec != preset[kind]}


def _of_vllm(engine: VllmEngine) -> PolicySpecs:
    """vLLM's own: under fcfs the newest of the running gives way, under priority the least urgent."""
    return {
        "scheduling": {"name": engine.scheduling_policy or "fcfs"},
        "chunk_size": _chunk_size_of(engine),
        "eviction": {"name": "lru"},
        "preemption": {"name": "newest"},
        "batching": {"name": "unified"},
    }


def _of_sglang(engine: SglangEngine) -> PolicySpecs:
    """SGLang's own: prefill goes first, and who has the fewest outputs gives way."""
    return {
        "scheduling": scheduling_of(
            engine.schedule_policy or "fcfs",
            disable_radix_cache=bool(engine.disable_radix_cache),
            enable_priority_scheduling=bool(engine.enable_priority_scheduling),
        ),
        "chunk_size": {"name": "unlimited"},
        "eviction": {"name": engine.radix_eviction_policy or "lru"},
        "preemption": {"name": "fewest_outputs"},
        "batching": {"name": "prefill_first"},
    }


def _chunk_size_of(engine: VllmEngine) -> dict[str, object]:
    threshold = engine.long_prefill_token_threshold
    return {"name": "threshold", "tokens": threshold} if threshold else {"name": "unlimited"}


def _check_precedence(scenario: Scenario, specs: PolicySpecs) -> None:
    """An engine key that names a policy sets it; giving both differently is an error."""
    engine = scenario.engine
    if isinstance(engine, SglangEngine):
        asked = _of_sglang(engine)["scheduling"]["name"] if engine.schedule_policy else None
        _check_same_name(scenario, specs, "scheduling", "schedule_policy", engine.schedule_policy, asked)
        _check_same_name(scenario, specs, "eviction", "radix_eviction_policy", engine.radix_eviction_policy)
        return
    _check_same_name(scenario, specs, "scheduling", "scheduling_policy", engine.scheduling_policy)
    threshold = engine.long_prefill_token_threshold
    if threshold and specs["chunk_size"] != _chunk_size_of(engine):
        message = (
            f"'{specs['chunk_size']['name']}' differs from engine.long_prefill_token_threshold {threshold}, "
            "which is a chunk size too; give one of them"
        )
        raise ScenarioError(scenario.source, "policies.chunk_size.name", message)


def _check_same_name(
    scenario: Scenario, specs: PolicySpecs, kind: str, key: str, asked: str | None, policy: object = None
) -> None:
    """`policy` is what this project calls the one that is `asked` for, where it has another name."""
    name = specs[kind]["name"]
    if asked and name != (policy or asked):
        message = f"'{name}' differs from engine.{key} '{asked}'; give one of them"
        raise ScenarioError(scenario.source, f"policies.{kind}.name", message)
