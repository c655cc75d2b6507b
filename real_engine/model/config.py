"""What this engine has to know of a model: its shapes, its rotary positions, its norms' epsilon, its last tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from ...policies.core.hf_config import ConfigError, model_from_config
from ...policies.core.model_spec import ModelSpec
from .errors import UnsupportedModel
from .json_file import read_json
from .rope import Rope
from .rope_config import rope_of

ARCHITECTURES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}

DEFAULT_EPS = 1e-6
"""What the four architectures' classes in `transformers` take where a config.json has no rms_norm_eps."""

PLAIN_SPEC = {"dtype": "bf16", "norms_per_layer": 2, "num_sliding_layers": 0, "num_experts": 0}
"""Fields of a ModelSpec, with the values that this engine computes."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A Llama-shaped model, dense, whose layers all attend to everything before."""

    spec: ModelSpec
    """Shapes: of `dtype` and experts nothing but bf16 and none."""
    rope: Rope
    rms_norm_eps: float
    eos_token_ids: tuple[int, ...]
    """Tokens after which a sampled output ends; empty where the model names none."""
    dtype: torch.dtype
    """Of the checkpoint, as the file states it."""

    @classmethod
    def of_spec(cls, spec: ModelSpec) -> ModelConfig:
        """A model of the catalog, for random weights: the catalog has shapes, so positions and epsilon are the usual.

        Raises UnsupportedModel for experts, sliding windows, Gemma's norms, quantised weights.
        """
        for field, plain in PLAIN_SPEC.items():
            if getattr(spec, field) != plain:
                says = f"{getattr(spec, field)!r} is not supported by the real engine; choose a model with {plain!r}"
                raise UnsupportedModel(spec.name, field, says)
        return cls(spec=spec, rope=Rope(), rms_norm_eps=DEFAULT_EPS, eos_token_ids=(), dtype=torch.bfloat16)

    @classmethod
    def of_file(cls, path: Path) -> ModelConfig:
        """The model of a Hugging Face config.json; a generation_config.json beside it may name the last tokens.

        Raises UnsupportedModel, which names file and field, and ModelError where a file cannot be read.
        """
        config = read_json(path)
        generation = path.with_name("generation_config.json")
        if generation.exists():
            eos = read_json(generation).get("eos_token_id")
            config = {**config, "eos_token_id": config.get("eos_token_id") if eos is None else eos}
        try:
            return cls.of_hf_config(config, path.absolute().parent.name)
        except ConfigError as error:
            raise UnsupportedModel(str(path), error.field, error.message) from None

    @classmethod
    def of_hf_config(cls, config: Mapping[str, object], name: str) -> ModelConfig:
        """The model that a parsed config.json describes. Raises ConfigError."""
        _refuse_unsupported(config)
        spec = model_from_config(config, name)
        _refuse_sliding(spec)
        if spec.head_dim % 2:
            raise ConfigError("head_dim", f"{spec.head_dim} is odd; rotary positions turn pairs")
        return cls(
            spec=spec,
            rope=rope_of(config, spec.max_position_embeddings),
            rms_norm_eps=_eps(config),
            eos_token_ids=_eos(config.get("eos_token_id"), spec.vocab_size),
            dtype=_dtype(config),
        )


def _refuse_unsupported(config: Mapping[str, object]) -> None:
    """Raise ConfigError for what changes a model's numbers and is not computed here."""
    named = config.get("architectures")
    if not isinstance(named, list) or len(named) != 1 or named[0] not in ARCHITECTURES:
        raise ConfigError("architectures", f"{named!r:.80} is not supported; choose one of {', '.join(ARCHITECTURES)}")
    plain = {"hidden_act": ("silu",), "mlp_bias": (False,), "quantization_config": ()}
    for field, choices in plain.items():
        value = config.get(field)
        if value is not None and value not in choices:
            choice = " or ".join(json.dumps(choice) for choice in choices) or "a checkpoint without"
            raise ConfigError(field, f"{value!r:.60} is not supported; choose {choice}")
    if named[0] == "MistralForCausalLM" and "sliding_window" not in config:
        raise ConfigError("sliding_window", "is missing, and 4096 would be taken, which is not supported; choose null")


def _refuse_sliding(spec: ModelSpec) -> None:
    """A window that no sequence outgrows changes nothing."""
    if spec.num_sliding_layers and (spec.sliding_window or 0) < spec.max_position_embeddings:
        raise ConfigError("sliding_window", f"{spec.sliding_window} is not supported; choose null")


def _eps(config: Mapping[str, object]) -> float:
    eps = config.get("rms_norm_eps", DEFAULT_EPS)
    if isinstance(eps, bool) or not isinstance(eps, int | float) or not 0 < eps < 1:
        raise ConfigError("rms_norm_eps", f"must be a number between 0 and 1, not {eps!r:.60}")
    return float(eps)


def _eos(value: object, vocab_size: int) -> tuple[int, ...]:
    ids = value if isinstance(value, list) else [] if value is None else [value]
    for token in ids:
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < vocab_size:
            raise ConfigError("eos_token_id", f"must be tokens below {vocab_size}, not {token!r:.60}")
    return tuple(ids)


def _dtype(config: Mapping[str, object]) -> torch.dtype:
    """float32 where the file says nothing, as torch itself takes. `model_from_config` has checked the name."""
    name = config.get("torch_dtype", config.get("dtype"))
    return DTYPES[str(name)] if name is not None else torch.float32
