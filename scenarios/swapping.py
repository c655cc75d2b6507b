"""Preempted sequences on the host: whether policies swap, how many blocks the host holds, what must be there."""

from __future__ import annotations

from typing import get_args

from ..policies import registry
from ..policies.core.gpu_spec import GpuSpec
from ..policies.core.memory import MemoryBudget
from ..policies.core.specs import GIB
from ..policies.finding import Folders
from ..policies.preemption.modes import Mode
from ..sim.cost_model.host_link import HostLink
from .engine_defaults import ResolvedEngine
from .errors import ScenarioError
from .preset_policies import PolicySpecs
from .schema import Scenario
from .vllm_defaults import ResolvedVllm


def _mode(policies: PolicySpecs, folders: Folders) -> object:
    """What the preemption policy does with a victim's KV; one of a user's that does not say has it recomputed."""
    return getattr(registry.create("preemption", policies["preemption"], folders), "mode", "recompute")


def swaps(policies: PolicySpecs, folders: Folders) -> bool:
    """Whether preempted sequences' KV goes to the host."""
    return _mode(policies, folders) == "swap"


def host_link(
    scenario: Scenario, policies: PolicySpecs, gpu: GpuSpec, budget: MemoryBudget, folders: Folders
) -> HostLink | None:
    """Each GPU's link to the host, None where nothing is swapped. ScenarioError where the data sheet has none."""
    if not swaps(policies, folders):
        return None
    try:
        return HostLink.of(gpu, budget.kv_bytes_per_token * budget.block_size)
    except ValueError as error:
        raise ScenarioError(scenario.source, "hardware.gpu", f"{error}, and preemption swaps") from None


def check_swapping(
    scenario: Scenario, engine: ResolvedEngine, policies: PolicySpecs, budget: MemoryBudget, folders: Folders
) -> None:
    """Raise ScenarioError where policies and engine do not go together in this."""
    space = engine.swap_space_gib if isinstance(engine, ResolvedVllm) else None
    mode = _mode(policies, folders)
    if mode not in get_args(Mode):
        says = f"'{policies['preemption']['name']}' has the mode {mode!r}; it must be {' or '.join(get_args(Mode))}"
        raise ScenarioError(scenario.source, "policies.preemption.name", says)
    if mode != "swap":
        if space is not None and "mode" not in policies["preemption"]:
            says = "nothing is swapped there; policies.preemption: {name: ..., mode: swap} does"
            raise ScenarioError(scenario.source, "engine.swap_space_gib", says)
        return
    if isinstance(engine, ResolvedVllm) and engine.kv_reservation == "contiguous":
        says = "'swap' has nothing to do with engine.kv_reservation: contiguous, where nobody is ever preempted"
        raise ScenarioError(scenario.source, "policies.preemption.mode", says)
    batching = policies["batching"]["name"]
    if getattr(registry.find("batching", batching, folders), "recomputes_only", False):
        says = f"'swap' does not go with batching '{batching}', which has preempted requests recomputed"
        raise ScenarioError(scenario.source, "policies.preemption.mode", says)
    if space is None:
        says = "'swap' needs host memory: give engine.swap_space_gib (for each GPU; vLLM V0 had 4)"
        raise ScenarioError(scenario.source, "policies.preemption.mode", says)
    if num_host_blocks(engine, budget) == 0:
        says = f"{space:g} holds no KV block, which takes {budget.kv_bytes_per_token * budget.block_size:,} bytes"
        raise ScenarioError(scenario.source, "engine.swap_space_gib", says)


def num_host_blocks(engine: ResolvedEngine, budget: MemoryBudget) -> int:
    """Whole KV blocks that each GPU's share of host memory holds."""
    if not isinstance(engine, ResolvedVllm) or engine.swap_space_gib is None:
        return 0
    return int(engine.swap_space_gib * GIB) // (budget.kv_bytes_per_token * budget.block_size)
