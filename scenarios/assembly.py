"""From a scenario to the parts of a run: model, GPU, memory budget, core, cost model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..policies import registry
from ..policies.core.config import EngineConfig, Policies, PrefixIndex
from ..policies.core.engine import EngineCore
from ..policies.core.estimator import StepTimeEstimator
from ..policies.core.frontend import Frontend
from ..policies.core.gpu_spec import GpuSpec
from ..policies.core.memory import DoesNotFit, MemoryBudget
from ..policies.core.model_spec import ModelSpec
from ..policies.finding import Folders
from ..sim.cost_model.analytic import AnalyticCostModel
from ..sim.cost_model.host_link import HostLink
from ..sim.cost_model.profile import Profile
from ..sim.cost_model.residual import ResidualCostModel, StretchPricer
from .device import Device
from .engine_defaults import ResolvedEngine, resolve
from .errors import ScenarioError
from .gpu_reading import read_gpu
from .loading import resolved
from .model_reading import read_model
from .policy_files import policy_folders, warn_of_strays
from .precision import with_precision
from .preset_policies import PolicySpecs, resolve_policies
from .profile_reading import check_measured_gpu, check_profile, profiled_cost_model, read_scenario_profile
from .requirements import check_requirements
from .schema import Scenario
from .sglang_defaults import ResolvedSglang
from .sglang_engine import sglang_budget, sglang_config, sglang_kv_bytes
from .sglang_policies import batching_of
from .swapping import check_swapping, host_link, num_host_blocks
from .vllm_defaults import ResolvedVllm
from .vllm_engine import vllm_budget, vllm_config, vllm_kv_bytes

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Assembly:
    """What a scenario describes, resolved and checked; parts that change are made anew for each run."""

    scenario: Scenario
    engine: ResolvedEngine
    policies: PolicySpecs
    model: ModelSpec
    gpu: GpuSpec
    budget: MemoryBudget
    config: EngineConfig
    folders: tuple[Path, ...] = (Path(),)
    """Where files of policies are looked for."""
    host_link: HostLink | None = None
    """Where preempted sequences are swapped to the host."""
    profile: Profile | None = None
    """What was measured of the model on the GPU; None: the data sheet prices the steps."""

    def core(self, estimator: StepTimeEstimator | None = None) -> EngineCore:
        """A fresh engine core. Policies that ask what steps cost ask `estimator`, the cost model where left out."""
        return EngineCore(self.config, Policies.of(self.policies, self.folders, estimator or self.cost_model()))

    def cost_model(self, kernels: StretchPricer | None = None) -> StretchPricer:
        """The cost model of the scenario's model on its hardware: by the profile where there is one.

        `kernels`, what `kernel_cost_model` gave, may be used again: it remembers what it has priced.
        """
        residual = self.scenario.hardware.residual
        kernels = kernels or self.kernel_cost_model()
        return kernels if residual is None else ResidualCostModel(kernels, residual.residual())

    def kernel_cost_model(self) -> StretchPricer:
        """The same without the residual that the scenario adds."""
        hardware, kv_bytes = self.scenario.hardware, _kv_bytes(self.engine, self.model)
        if self.profile is not None:
            return profiled_cost_model(self.scenario, self.profile, self.model, self.gpu, kv_bytes, self.engine)
        efficiencies = None if hardware.efficiencies is None else hardware.efficiencies.efficiencies()
        return AnalyticCostModel(self.model, self.gpu, hardware.tensor_parallel, efficiencies, kv_bytes)

    def frontend(self) -> Frontend:
        """What lies between client and engine; the network's round trip is split in halves."""
        front = self.scenario.frontend
        return Frontend(
            ingress_ns=round((front.network_s / 2 + front.tokenize_s) * NS_PER_S),
            egress_ns=round((front.network_s / 2 + front.detokenize_s) * NS_PER_S),
        )

    @property
    def warmup_ns(self) -> int:
        """When measuring begins; an automatic warm-up must have been found before."""
        warmup_s = self.scenario.run.warmup_s
        assert warmup_s != "auto", "warmup.settled comes first"
        return round(warmup_s * NS_PER_S)

    def with_warmup(self, warmup_s: float) -> Assembly:
        """The same with this warm-up."""
        run = self.scenario.run.model_copy(update={"warmup_s": warmup_s})
        return replace(self, scenario=self.scenario.model_copy(update={"run": run}))

    def memory(self) -> dict[str, int]:
        """The memory budget as it stands in a summary."""
        return asdict(self.budget)

    def resolved(self) -> dict[str, Any]:
        """The scenario with every default explicit."""
        return resolved(self.scenario, self.engine)


def assemble(scenario: Scenario, warn: Callable[[str], None] | None = None, device: Device | None = None) -> Assembly:
    """Resolve a scenario. Raises ScenarioError where the parts do not go together: a model that does not fit, say.

    `warn` gets sentences for people: what was found odd and what was done about it. `device`, where the real engine
    runs, takes the place of the scenario's GPU.
    """
    profile = read_scenario_profile(scenario, warn or _unheard)
    if profile is not None and device is None:  # before a data sheet is blamed for what it does not say
        check_measured_gpu(scenario, profile)
    model, gpu = read_model(scenario, warn or _unheard), read_gpu(scenario, warn or _unheard, profile)
    model = with_precision(scenario, model, gpu)
    if device is not None:
        model, gpu, profile = device.model(model), device.gpu(gpu), None
    _check_link(scenario, gpu)
    engine = resolve(scenario, gpu.memory_bytes, model.max_position_embeddings, gpu.name)
    budget = _budget(scenario, engine, model, gpu)
    folders, policies = policy_folders(scenario), resolve_policies(scenario)
    warn_of_strays(scenario, policies, warn or _unheard)
    prefix_index = prefix_index_of(policies["batching"], folders)
    if isinstance(engine, ResolvedSglang):
        _check_batching(scenario, prefix_index)
        engine = engine.with_kv_tokens(budget.num_blocks * budget.block_size)
        policies["batching"] = batching_of(asdict(engine)) | policies["batching"]
        config = sglang_config(engine, budget, prefix_index)
    else:
        _check_index(scenario, engine, prefix_index)
        config = vllm_config(engine, budget, prefix_index)
    _check_cache(scenario, engine, config)
    check_requirements(scenario, config, policies, folders)
    check_swapping(scenario, engine, policies, budget, folders)
    config = replace(config, num_host_blocks=num_host_blocks(engine, budget))
    link = host_link(scenario, policies, gpu, budget, folders) if device is None else None  # copies are measured there
    if profile is not None:
        check_profile(scenario, profile, model, _kv_bytes(engine, model))
    return Assembly(scenario, engine, policies, model, gpu, budget, config, folders, link, profile)


def prefix_index_of(batching: Mapping[str, object], folders: Folders) -> PrefixIndex:
    """What finds cached prefixes under a batching policy."""
    index: PrefixIndex = getattr(registry.find("batching", batching["name"], folders), "prefix_index", "hashed_blocks")
    return index


def _check_batching(scenario: Scenario, prefix_index: PrefixIndex) -> None:
    if prefix_index != "radix_tree":
        message = f"'{resolve_policies(scenario)['batching']['name']}' does not go with the sglang preset"
        raise ScenarioError(scenario.source, "policies.batching.name", message)


def _check_index(scenario: Scenario, engine: ResolvedVllm, prefix_index: PrefixIndex) -> None:
    if engine.kv_reservation == "contiguous" and prefix_index == "radix_tree":
        name = resolve_policies(scenario)["batching"]["name"]
        message = f"'{name}' counts pages of a radix tree, which engine.kv_reservation 'contiguous' has not"
        raise ScenarioError(scenario.source, "policies.batching.name", message)


def _check_link(scenario: Scenario, gpu: GpuSpec) -> None:
    if scenario.hardware.tensor_parallel > 1 and gpu.interconnect_bytes_per_s is None:
        message = f"{gpu.name} has no link to other GPUs; tensor_parallel must be 1"
        raise ScenarioError(scenario.source, "hardware.tensor_parallel", message)


def _check_cache(scenario: Scenario, engine: ResolvedEngine, config: EngineConfig) -> None:
    if scenario.run.cache == "warm" and not config.enable_prefix_caching:
        sglang = isinstance(engine, ResolvedSglang)
        key = "disable_radix_cache: true" if sglang else "enable_prefix_caching: false"
        key = key if config.kv_reservation == "paged" else "kv_reservation: contiguous"
        message = f"'warm' needs a prefix cache, which engine.{key} switches off"
        raise ScenarioError(scenario.source, "run.cache", message)


def _unheard(_: str) -> None:
    """Where nobody listens."""


def _budget(scenario: Scenario, engine: ResolvedEngine, model: ModelSpec, gpu: GpuSpec) -> MemoryBudget:
    tensor_parallel = scenario.hardware.tensor_parallel
    try:
        if isinstance(engine, ResolvedSglang):
            return sglang_budget(engine, model, gpu, tensor_parallel)
        return vllm_budget(engine, model, gpu, tensor_parallel)
    except DoesNotFit as error:
        raise ScenarioError(scenario.source, "model", str(error)) from error  # which has the budget
    except ValueError as error:
        raise ScenarioError(scenario.source, "hardware.tensor_parallel", str(error)) from None


def _kv_bytes(engine: ResolvedEngine, model: ModelSpec) -> int:
    return sglang_kv_bytes(engine, model) if isinstance(engine, ResolvedSglang) else vllm_kv_bytes(engine, model)
