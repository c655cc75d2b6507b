"""What the real engine does not do, told before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator

from .engine_defaults import ResolvedEngine
from .errors import ScenarioError
from .schema import Scenario

KV_AS_COMPUTED = ("auto", "bf16", "bfloat16")


def refuse(scenario: Scenario) -> None:
    """Raise ScenarioError where the scenario asks for what only the simulator does."""
    for where, says in _refusals(scenario):
        raise ScenarioError(scenario.source, where, says)


def refuse_kv_dtype(scenario: Scenario, engine: ResolvedEngine, dtype: str) -> None:
    """Raise ScenarioError where KV would be of another dtype than the model."""
    asked = engine.kv_cache_dtype
    if asked != "auto" and dtype != "bf16":
        says = f"'{asked}' differs from the run's {dtype}: the real engine keeps KV in the model's dtype; choose auto"
        raise ScenarioError(scenario.source, "engine.kv_cache_dtype", says)


def refuse_unsteady_answers(scenario: Scenario, dtype: str) -> None:
    """Raise ScenarioError where answers of two passes may differ: the cache would hold what was not said."""
    run = scenario.run
    if run.cache == "warm" and run.outputs == "sampled" and dtype != "fp32":
        says = f"'sampled': in {dtype} the pass before a warm run may answer otherwise; choose forced, or --dtype fp32"
        raise ScenarioError(scenario.source, "run.outputs", says)


def _refusals(scenario: Scenario) -> Iterator[tuple[str, str]]:
    engine, run = scenario.engine, scenario.run
    if scenario.hardware.tensor_parallel > 1:
        says = f"{scenario.hardware.tensor_parallel}: the real engine does not run on several GPUs; choose 1"
        yield "hardware.tensor_parallel", says
    if engine.quantization is not None:
        yield "engine.quantization", f"'{engine.quantization}': the real engine does not quantize weights; leave it out"
    if engine.kv_cache_dtype is not None and engine.kv_cache_dtype not in KV_AS_COMPUTED:
        yield "engine.kv_cache_dtype", f"'{engine.kv_cache_dtype}': the real engine does not quantize KV; choose auto"
    if run.warmup_s == "auto":
        yield "run.warmup_s", "'auto': the real engine would have to serve the whole traffic twice; give seconds"
