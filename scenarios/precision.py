"""The precision of a run: the model file's own, or what `engine.quantization` and `engine.dtype` make of it."""

from __future__ import annotations

from dataclasses import replace

from ..policies.core.gpu_spec import GpuSpec
from ..policies.core.hf_config import QUANTIZATIONS
from ..policies.core.model_spec import ModelSpec
from .errors import ScenarioError
from .schema import Scenario


def with_precision(scenario: Scenario, model: ModelSpec, gpu: GpuSpec) -> ModelSpec:
    """The model with the weights that the run has.

    ScenarioError where the file's weights are quantized otherwise, or the GPU cannot multiply them.
    """
    quantization, key = scenario.engine.quantization, "model"
    if quantization is not None:
        key = "engine.quantization"
        dtype = QUANTIZATIONS[quantization]
        if model.dtype not in ("bf16", dtype):
            message = f"'{quantization}' differs from the {model.dtype} weights of {model.name}"
            raise ScenarioError(scenario.source, key, message)
        model = replace(model, dtype=dtype)
    if scenario.engine.dtype == "float32":
        if model.dtype != "bf16":
            message = f"'float32' does not go with the {model.dtype} weights of {model.name}"
            raise ScenarioError(scenario.source, "engine.dtype", message)
        model, key = replace(model, dtype="fp32"), "engine.dtype"
    try:
        gpu.peak_flop_per_s(model.dtype)
    except ValueError as error:
        raise ScenarioError(scenario.source, key, str(error)) from None
    return model
