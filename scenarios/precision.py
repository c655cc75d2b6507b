"""The precision of a run: the model file's own, or what `engine.quantization` and `engine.dtype` make of it."""

from __future__ import annotations

from dataclasses import replace

from ..policies.core.gpu_spec import GpuSpec
from ..policies.core.hf_config import QUANTIZATIONS
from ..policies.core.model_spec import ACTIVATION_BYTES, DTYPE_BITS, ModelSpec
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


def activation_bytes(engine_dtype: str) -> int:
    """Bytes of a number in activations, and in the KV cache where it is not said otherwise."""
    return DTYPE_BITS["fp32"] // 8 if engine_dtype == "float32" else ACTIVATION_BYTES
