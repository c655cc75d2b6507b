"""From a scenario to the parts of a run: model, GPU, memory budget, core, cost model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..policies.core.config import EngineConfig, Policies
from ..policies.core.engine import EngineCore
from ..policies.core.gpu_spec import GpuSpec
from ..policies.core.memory import DoesNotFit, MemoryBudget, memory_budget
from ..policies.core.model_spec import ACTIVATION_BYTES, ModelSpec
from ..sim.cost_model.analytic import AnalyticCostModel
from ..sim.driver import Frontend
from .engine_defaults import ResolvedEngine, resolve
from .errors import ScenarioError
from .gpu_reading import read_gpu
from .loading import resolved
from .model_reading import read_model
from .precision import with_precision
from .preset_policies import PolicySpecs, resolve_policies
from .schema import Scenario

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

    def core(self) -> EngineCore:
        """A fresh engine core."""
        return EngineCore(self.config, Policies.of(self.policies))

    def cost_model(self) -> AnalyticCostModel:
        """The cost model of the scenario's model on its hardware."""
        tensor_parallel = self.scenario.hardware.tensor_parallel
        return AnalyticCostModel(self.model, self.gpu, tensor_parallel, kv_dtype_bytes=_kv_bytes(self.engine))

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


def assemble(scenario: Scenario, warn: Callable[[str], None] | None = None) -> Assembly:
    """Resolve a scenario. Raises ScenarioError where the parts do not go together: a model that does not fit, say.

    `warn` gets sentences for people: what was found odd and what was done about it.
    """
    model, gpu = read_model(scenario, warn or _unheard), read_gpu(scenario, warn or _unheard)
    model = with_precision(scenario, model, gpu)
    _check_link(scenario, gpu)
    engine = resolve(scenario, gpu.memory_bytes, model.max_position_embeddings, gpu.name)
    budget = _budget(scenario, engine, model, gpu)
    config = EngineConfig(
        num_blocks=budget.num_blocks,
        block_size=engine.block_size,
        max_num_seqs=engine.max_num_seqs,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        max_model_len=engine.max_model_len,
        depth=2 if engine.async_scheduling else 1,
        enable_prefix_caching=engine.enable_prefix_caching,
        enable_chunked_prefill=engine.enable_chunked_prefill,
        reserve_full_prompt=engine.scheduler_reserve_full_isl,
        watermark=engine.watermark,
    )
    _check_cache(scenario, config)
    return Assembly(scenario, engine, resolve_policies(scenario), model, gpu, budget, config)


def _check_link(scenario: Scenario, gpu: GpuSpec) -> None:
    if scenario.hardware.tensor_parallel > 1 and gpu.interconnect_bytes_per_s is None:
        message = f"{gpu.name} has no link to other GPUs; tensor_parallel must be 1"
        raise ScenarioError(scenario.source, "hardware.tensor_parallel", message)


def _check_cache(scenario: Scenario, config: EngineConfig) -> None:
    if scenario.run.cache == "warm" and not config.enable_prefix_caching:
        message = "'warm' needs a prefix cache, which engine.enable_prefix_caching: false switches off"
        raise ScenarioError(scenario.source, "run.cache", message)


def _unheard(_: str) -> None:
    """Where nobody listens."""


def _budget(scenario: Scenario, engine: ResolvedEngine, model: ModelSpec, gpu: GpuSpec) -> MemoryBudget:
    tensor_parallel = scenario.hardware.tensor_parallel
    try:
        return memory_budget(
            model,
            gpu,
            tensor_parallel=tensor_parallel,
            gpu_memory_utilization=engine.gpu_memory_utilization,
            max_num_batched_tokens=engine.max_num_batched_tokens,
            max_num_seqs=engine.max_num_seqs,
            block_size=engine.block_size,
            kv_dtype_bytes=_kv_bytes(engine),
            num_blocks=engine.num_gpu_blocks_override,
        )
    except DoesNotFit as error:
        raise ScenarioError(scenario.source, "model", str(error)) from None
    except ValueError as error:
        raise ScenarioError(scenario.source, "hardware.tensor_parallel", str(error)) from None


def _kv_bytes(engine: ResolvedEngine) -> int:
    return 1 if engine.kv_cache_dtype == "fp8" else ACTIVATION_BYTES
