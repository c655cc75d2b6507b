"""Reads the `config.json` of a decoder-only model on Hugging Face.

What the file leaves out is what the architecture's class in `transformers` takes. What the cost model does not
cover is refused, never approximated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .model_spec import INT4_GROUP, Dtype, ModelSpec

DTYPES = ("bfloat16", "float16", "float32")
"""float32 checkpoints too are served in 16 bits."""

QUANTIZATIONS: dict[str, Dtype] = {"fp8": "fp8", "awq": "int4", "gptq": "int4"}
"""What vLLM's `quantization`, which is the file's `quant_method`, makes of the linear layers' weights."""

LAYER_TYPES = ("full_attention", "sliding_attention")


class ConfigError(ValueError):
    """A field of a config.json that is missing, malformed, or asks for what is not covered."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class Architecture:
    """How a class of `transformers` differs from Llama, and what it takes where the file says nothing."""

    qkv_bias: bool = False
    """Always, whatever `attention_bias` says."""
    qk_norm: bool = False
    head_dim: int | None = None
    """None: hidden size over heads."""
    tied_embeddings: bool = False
    norms_per_layer: int = 2
    experts: bool = False
    """In every layer instead of an MLP."""
    slides: Literal["never", "all layers", "every other layer", "as layer_types says"] = "never"
    """Which layers have the file's `sliding_window`, where it has no `layer_types`."""


ARCHITECTURES = {
    "LlamaForCausalLM": Architecture(),
    "MistralForCausalLM": Architecture(slides="all layers"),
    "Qwen2ForCausalLM": Architecture(qkv_bias=True, slides="as layer_types says"),
    "Qwen3ForCausalLM": Architecture(qk_norm=True, head_dim=128, slides="as layer_types says"),
    "Qwen3MoeForCausalLM": Architecture(qk_norm=True, head_dim=128, experts=True, slides="as layer_types says"),
    "Gemma2ForCausalLM": Architecture(
        head_dim=256, tied_embeddings=True, norms_per_layer=4, slides="every other layer"
    ),
}


def model_from_config(config: Mapping[str, object], name: str) -> ModelSpec:
    """The model that a parsed config.json describes. Raises ConfigError, which names the field at fault."""
    architecture = _architecture(config)
    _refuse_uncovered(config)
    if architecture.experts:
        _refuse_dense_layers(config)
    heads, hidden = _count(config, "num_attention_heads"), _count(config, "hidden_size")
    bias = _flag(config, "attention_bias", False)
    num_layers = _count(config, "num_hidden_layers")
    num_sliding_layers = _sliding_layers(config, architecture, num_layers)
    try:
        return ModelSpec(
            name=name,
            num_layers=num_layers,
            hidden_size=hidden,
            intermediate_size=_count(config, "moe_intermediate_size" if architecture.experts else "intermediate_size"),
            num_heads=heads,
            num_kv_heads=_count(config, "num_key_value_heads"),
            head_dim=_head_dim(config, architecture, hidden, heads),
            vocab_size=_count(config, "vocab_size"),
            max_position_embeddings=_count(config, "max_position_embeddings"),
            dtype=_weights(config.get("quantization_config")),
            tied_embeddings=_flag(config, "tie_word_embeddings", architecture.tied_embeddings),
            attention_bias=architecture.qkv_bias or bias,
            output_bias=bias,
            qk_norm=architecture.qk_norm,
            norms_per_layer=architecture.norms_per_layer,
            sliding_window=_count(config, "sliding_window") if num_sliding_layers else None,
            num_sliding_layers=num_sliding_layers,
            num_experts=_count(config, "num_experts") if architecture.experts else 0,
            experts_per_token=_count(config, "num_experts_per_tok") if architecture.experts else 0,
        )
    except ConfigError:
        raise
    except ValueError as error:
        field = "num_experts_per_tok" if "experts a token" in str(error) else "num_key_value_heads"
        raise ConfigError(field, str(error)) from None


def _architecture(config: Mapping[str, object]) -> Architecture:
    named = config.get("architectures")
    if not isinstance(named, list) or len(named) != 1:
        raise ConfigError("architectures", f"must be a list of one name, not {named!r}")
    if not isinstance(named[0], str) or named[0] not in ARCHITECTURES:
        choices = ", ".join(ARCHITECTURES)
        raise ConfigError("architectures", f"{named[0]!r} is not covered by the cost model; choose {choices}")
    return ARCHITECTURES[named[0]]


def _refuse_uncovered(config: Mapping[str, object]) -> None:
    if _flag(config, "mlp_bias", False):
        raise ConfigError("mlp_bias", "true is not covered by the cost model")
    dtype = config.get("torch_dtype", config.get("dtype"))
    if dtype is not None and dtype not in DTYPES:
        key = "torch_dtype" if "torch_dtype" in config else "dtype"
        raise ConfigError(key, f"{dtype!r} is unknown; choose {', '.join(DTYPES)}")


def _refuse_dense_layers(config: Mapping[str, object]) -> None:
    """Experts are covered where every layer has them."""
    for field, everywhere in (("decoder_sparse_step", 1), ("mlp_only_layers", [])):
        if config.get(field, everywhere) not in (None, everywhere):
            raise ConfigError(
                field, f"{config[field]!r:.60} is not covered by the cost model; every layer needs experts"
            )


def _weights(quantization: object) -> Dtype:
    """Of the linear layers, by the checkpoint's own quantization."""
    if quantization is None:
        return "bf16"
    method = quantization.get("quant_method") if isinstance(quantization, Mapping) else None
    if not isinstance(quantization, Mapping) or not isinstance(method, str) or method not in QUANTIZATIONS:
        methods = ", ".join(QUANTIZATIONS)
        raise ConfigError("quantization_config", f"quant_method must be one of {methods} to be covered")
    dtype = QUANTIZATIONS[method]
    if dtype == "int4" and (quantization.get("bits"), quantization.get("group_size")) != (4, INT4_GROUP):
        raise ConfigError("quantization_config", f"bits must be 4 and group_size {INT4_GROUP} to be covered")
    return dtype


def _sliding_layers(config: Mapping[str, object], architecture: Architecture, num_layers: int) -> int:
    """How many layers slide. Qwen models carry a window that `use_sliding_window: false` switches off."""
    switched_on = config.get("sliding_window") is not None and _flag(config, "use_sliding_window", True)
    if architecture.slides == "never" or not switched_on:
        return 0
    types = config.get("layer_types")
    if types is not None:
        if not isinstance(types, list) or len(types) != num_layers or any(name not in LAYER_TYPES for name in types):
            raise ConfigError("layer_types", f"must be a list of {num_layers} of {', '.join(LAYER_TYPES)}")
        return types.count("sliding_attention")
    if architecture.slides == "as layer_types says":
        raise ConfigError("layer_types", "is missing, and use_sliding_window is true")
    return num_layers if architecture.slides == "all layers" else (num_layers + 1) // 2


def _head_dim(config: Mapping[str, object], architecture: Architecture, hidden: int, heads: int) -> int:
    if config.get("head_dim") is not None:
        return _count(config, "head_dim")
    if architecture.head_dim is not None:
        return architecture.head_dim
    if hidden % heads:
        raise ConfigError("head_dim", f"is missing, and hidden_size {hidden} does not divide by {heads} heads")
    return hidden // heads


def _count(config: Mapping[str, object], field: str) -> int:
    value = config.get(field)
    if value is None:
        raise ConfigError(field, "is missing")
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**9:
        raise ConfigError(field, f"must be a whole number from 1 to a billion, not {value!r:.60}")
    return value


def _flag(config: Mapping[str, object], field: str, default: bool) -> bool:
    value = config.get(field)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ConfigError(field, f"must be true or false, not {value!r:.60}")
    return value
