"""From the scenario's `hardware.profile:` to the measured profile that prices its steps."""

from __future__ import annotations

from collections.abc import Callable

from ..calibrate.shipped import shipped_profiles
from ..policies.core.gpu_spec import GpuSpec
from ..policies.core.model_spec import ModelSpec
from ..sim.cost_model.profile import Profile, read_profile
from ..sim.cost_model.profiled import ProfiledCostModel
from ..sim.cost_model.timings import ProfileError
from .engine_defaults import ResolvedEngine
from .errors import ScenarioError
from .paths import path_given
from .schema import Scenario
from .vllm_defaults import ResolvedVllm

KEY = "hardware.profile"
LARGEST_GRAPH = 512


def read_scenario_profile(scenario: Scenario, warn: Callable[[str], None]) -> Profile | None:
    """The scenario's profile, None where it has none; ScenarioError says what is wrong with it.

    It is a path, or else the name of one that comes with the package.
    """
    given = scenario.hardware.profile
    if given is None:
        return None
    known = None if scenario.path_to(given).exists() else shipped_profiles().get(given)
    try:
        return read_profile(known or path_given(scenario, KEY, given, warn))
    except ProfileError as error:
        raise ScenarioError(scenario.source, KEY, str(error)) from None


def check_measured_gpu(scenario: Scenario, profile: Profile) -> None:
    """ScenarioError where it was measured on another GPU; a data sheet of one's own may stand in for the catalog's."""
    gpu = scenario.hardware.gpu
    if gpu is not None and not gpu.endswith(".yaml") and gpu != profile.header.gpu:
        message = f"'{gpu}' is not the {profile.header.gpu} that {profile.path} was measured on"
        raise ScenarioError(scenario.source, "hardware.gpu", message)


def check_profile(scenario: Scenario, profile: Profile, model: ModelSpec, kv_dtype_bytes: int) -> None:
    """ScenarioError where it was measured with another model's shapes, or divided otherwise."""
    try:
        profile.check_model(model, scenario.hardware.tensor_parallel, kv_dtype_bytes)
    except ProfileError as error:
        raise ScenarioError(scenario.source, KEY, str(error)) from None


def profiled_cost_model(
    scenario: Scenario, profile: Profile, model: ModelSpec, gpu: GpuSpec, kv_dtype_bytes: int, engine: ResolvedEngine
) -> ProfiledCostModel:
    """The cost model of a profile that goes with the scenario.

    Steps are padded as the profile says; where it says nothing they are where the engine is vLLM.
    """
    graphs: tuple[int, ...] = ()
    measured = profile.header.graph_sizes
    if measured is not None:
        graphs = up_to(measured, _max_rows(engine))
    elif isinstance(engine, ResolvedVllm):
        graphs = graph_sizes(engine.max_num_seqs)
    parallel, alone = scenario.hardware.tensor_parallel, measured is not None
    return ProfiledCostModel(profile, model, parallel, gpu, kv_dtype_bytes, graphs, pads_decodes_alone=alone)


def _max_rows(engine: ResolvedEngine) -> int | None:
    return engine.max_num_seqs if isinstance(engine, ResolvedVllm) else engine.max_running_requests


def up_to(sizes: tuple[int, ...], max_rows: int | None) -> tuple[int, ...]:
    """Of an engine's graphs those that it captures for so many rows at most: the last one is of just as many."""
    if not sizes or max_rows is None:
        return sizes
    return (*(size for size in sizes if size < max_rows), max_rows)


def graph_sizes(max_num_seqs: int) -> tuple[int, ...]:
    """The numbers of tokens for which vLLM captures CUDA graphs: smaller steps are padded to the next of them.

    Source: `_set_cudagraph_sizes` in vLLM's `config/vllm.py`: 1, 2, 4, multiples of 8 below 256, of 16 from there
    on, up to twice `max_num_seqs`, at most 512.
    """
    largest = min(2 * max_num_seqs, LARGEST_GRAPH)
    return tuple(size for size in (1, 2, 4, *range(8, 256, 8), *range(256, largest + 1, 16)) if size <= largest)
