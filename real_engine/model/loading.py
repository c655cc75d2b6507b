"""From a folder, a config.json or a name's shapes to a model on a device."""

from __future__ import annotations

from pathlib import Path

import torch

from ...kernels.contract import Kernels
from ...policies.core.model_spec import ModelSpec
from .checkpoint import has_weights, read_weights
from .config import ModelConfig
from .errors import BadWeights, UnsupportedModel
from .random_weights import fill_randomly
from .transformer import Transformer
from .weights import allocate, places


def config_of(source: Path | ModelSpec) -> ModelConfig:
    """The model of a folder, of a config.json, or of shapes. Raises ModelError, mostly UnsupportedModel."""
    if isinstance(source, ModelSpec):
        return ModelConfig.of_spec(source)
    if not source.exists():
        raise UnsupportedModel(str(source), "the path", "does not exist; choose a model's folder or its config.json")
    return ModelConfig.of_file(source / "config.json" if source.is_dir() else source)


def weight_bytes(config: ModelConfig, dtype: torch.dtype) -> int:
    """Bytes of the weights on the device; tied embeddings count once."""
    return config.spec.num_parameters * dtype.itemsize


def rope_bytes(config: ModelConfig) -> int:
    """Bytes of the rotary table, which is fp32 whatever the weights are."""
    return config.spec.max_position_embeddings * config.spec.head_dim * torch.float32.itemsize


def load_model(
    source: Path | ModelSpec,
    *,
    device: torch.device,
    dtype: torch.dtype,
    seed: int,
    kernels: Kernels,
    random: bool = False,
) -> Transformer:
    """The model, its weights read from safetensors or, seeded, made up.

    Made up are those of a ModelSpec, and of a path where `random` asks for it, whether or not there are safetensors.
    Raises ModelError (UnsupportedModel, BadWeights), with one line.
    """
    config = config_of(source)
    folder = None if isinstance(source, ModelSpec) else source if source.is_dir() else source.parent
    read = folder is not None and not random
    if folder is not None and read and not has_weights(folder):
        raise BadWeights(f"{folder}: there are no safetensors, and random weights were not asked for")
    weights = allocate(config.spec, dtype, device)
    if folder is not None and read:
        read_weights(folder, places(weights, config.spec))
    else:
        fill_randomly(weights, config.spec, seed)
    return Transformer(config, weights, kernels)
