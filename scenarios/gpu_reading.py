"""From the scenario's `hardware.gpu:` to the GPU: a known name, or the path of a YAML data sheet of one's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from ..policies.core import specs
from ..policies.core.gpu_spec import GpuSpec
from ..sim.cost_model.profile import Profile, gpu_of
from .complaints import complaint
from .errors import ScenarioError
from .paths import path_given
from .schema import Scenario
from .section import Section
from .yaml_reading import read_yaml_mapping

_Quantity = Annotated[float, Field(gt=0, le=1e9)]


class DataSheet(Section):
    """The fields of the catalog's own files; speeds are dense, a link counts both directions together."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    memory_gib: Annotated[float, Field(gt=0, le=1e6)]
    bandwidth_gb_s: _Quantity
    bf16_tflop_s: _Quantity
    fp8_tflop_s: _Quantity | None = None
    """None: no fp8 tensor cores."""
    fp32_tflop_s: _Quantity | None = None
    """None: not known, and nothing runs in float32."""
    interconnect_gb_s: _Quantity | None = None
    """None: it stands alone."""
    host_link_gb_s: _Quantity | None = None
    """To the host's memory; None: not known, and nothing can be swapped there."""


def is_data_sheet(gpu: str) -> bool:
    """Whether the scenario's GPU is a file rather than a name."""
    return gpu.endswith(".yaml")


def read_gpu(scenario: Scenario, warn: Callable[[str], None], profile: Profile | None = None) -> GpuSpec:
    """The scenario's GPU, its profile's where it names none; ScenarioError names the file and the key at fault."""
    gpu = scenario.hardware.gpu
    if gpu is None:
        assert profile is not None, "the schema asks for one of them"
        return _profiled_gpu(scenario, profile)
    if not is_data_sheet(gpu):
        return specs.gpu(gpu)
    return read_data_sheet(path_given(scenario, "hardware.gpu", gpu, warn))


def _profiled_gpu(scenario: Scenario, profile: Profile) -> GpuSpec:
    try:
        return gpu_of(profile.header)
    except specs.UnknownName as error:
        raise ScenarioError(scenario.source, "hardware.gpu", f"is required, as in {profile.path} {error}") from None


def read_data_sheet(path: Path) -> GpuSpec:
    """The GPU in a YAML data sheet; ScenarioError names the file and the key at fault."""
    raw = read_yaml_mapping(path, "a GPU is a mapping with name, memory_gib, bandwidth_gb_s, bf16_tflop_s")
    try:
        sheet = DataSheet.model_validate(raw)
    except ValidationError as error:
        where, message = complaint(error.errors(include_url=False)[0], raw)
        raise ScenarioError(path, where, message) from None
    return specs.gpu_from_sheet(sheet.model_dump())
