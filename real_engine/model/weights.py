"""The tensors of a model as its forward pass reads them, and the names under which a checkpoint has them.

    H, KVH, D   query heads, KV heads, a head's dimension
    a linear layer's weight is [outputs, inputs]

What is computed together is stored together: Q, K and V are rows of one matrix, gate and up of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ...policies.core.model_spec import ModelSpec


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer."""

    input_norm: Tensor
    """[hidden]"""
    qkv: Tensor
    """[(H + 2 KVH) * D, hidden]: rows of Q, then K, then V."""
    qkv_bias: Tensor | None
    q_norm: Tensor | None
    """[D], for every head alike."""
    k_norm: Tensor | None
    output: Tensor
    """[hidden, H * D]"""
    output_bias: Tensor | None
    post_norm: Tensor
    """[hidden]"""
    gate_up: Tensor
    """[2 * intermediate, hidden]: rows of gate, then up."""
    down: Tensor
    """[hidden, intermediate]"""


@dataclass(frozen=True, slots=True)
class Weights:
    """A whole model."""

    embedding: Tensor
    """[vocab, hidden]"""
    layers: tuple[LayerWeights, ...]
    final_norm: Tensor
    """[hidden]"""
    lm_head: Tensor
    """[vocab, hidden]; the embedding itself where it is tied."""


class Place(NamedTuple):
    """Where a tensor of a checkpoint goes: `view` is (part of) a tensor of Weights, contiguous."""

    name: str
    view: Tensor


def allocate(spec: ModelSpec, dtype: torch.dtype, device: torch.device) -> Weights:
    """Room for a model's weights; their values are what the memory held."""

    def room(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=device)

    def layer() -> LayerWeights:
        hidden, width = spec.hidden_size, spec.qkv_width(1)
        return LayerWeights(
            input_norm=room(hidden),
            qkv=room(width, hidden),
            qkv_bias=room(width) if spec.attention_bias else None,
            q_norm=room(spec.head_dim) if spec.qk_norm else None,
            k_norm=room(spec.head_dim) if spec.qk_norm else None,
            output=room(hidden, spec.num_heads * spec.head_dim),
            output_bias=room(hidden) if spec.output_bias else None,
            post_norm=room(hidden),
            gate_up=room(2 * spec.intermediate_size, hidden),
            down=room(hidden, spec.intermediate_size),
        )

    embedding = room(spec.vocab_size, spec.hidden_size)
    return Weights(
        embedding=embedding,
        layers=tuple(layer() for _ in range(spec.num_layers)),
        final_norm=room(spec.hidden_size),
        lm_head=embedding if spec.tied_embeddings else room(spec.vocab_size, spec.hidden_size),
    )


def places(weights: Weights, spec: ModelSpec) -> Iterator[Place]:
    """Every tensor that a checkpoint must have, by its name in `transformers`, and where it goes."""
    yield Place("model.embed_tokens.weight", weights.embedding)
    for number, layer in enumerate(weights.layers):
        for place in _layer_places(layer, spec):
            yield Place(f"model.layers.{number}.{place.name}", place.view)
    yield Place("model.norm.weight", weights.final_norm)
    if not spec.tied_embeddings:
        yield Place("lm_head.weight", weights.lm_head)


def _layer_places(layer: LayerWeights, spec: ModelSpec) -> Iterator[Place]:
    queries, keys = spec.num_heads * spec.head_dim, spec.num_kv_heads * spec.head_dim
    attention_parts = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    mlp_parts = ("mlp.gate_proj", "mlp.up_proj")
    yield from _place("input_layernorm.weight", layer.input_norm)
    yield from _parts(attention_parts, "weight", layer.qkv, (queries, keys, keys))
    yield from _parts(attention_parts, "bias", layer.qkv_bias, (queries, keys, keys))
    yield from _place("self_attn.q_norm.weight", layer.q_norm)
    yield from _place("self_attn.k_norm.weight", layer.k_norm)
    yield from _place("self_attn.o_proj.weight", layer.output)
    yield from _place("self_attn.o_proj.bias", layer.output_bias)
    yield from _place("post_attention_layernorm.weight", layer.post_norm)
    yield from _parts(mlp_parts, "weight", layer.gate_up, (spec.intermediate_size, spec.intermediate_size))
    yield from _place("mlp.down_proj.weight", layer.down)


def _place(name: str, tensor: Tensor | None) -> Iterator[Place]:
    """Where the model has that tensor."""
    if tensor is not None:
        yield Place(name, tensor)


def _parts(names: tuple[str, ...], kind: str, tensor: Tensor | None, rows: tuple[int, ...]) -> Iterator[Place]:
    """Stretches of rows, one after another, of a tensor that holds several of the checkpoint's."""
    if tensor is not None:
        for name, view in zip(names, tensor.split_with_sizes(rows), strict=True):
            yield Place(f"{name}.{kind}", view)
