"""The shapes of a decoder-only transformer, and the bytes that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dtype = Literal["fp32", "bf16", "fp8", "int4"]
DTYPE_BITS: dict[Dtype, int] = {"fp32": 32, "bf16": 16, "fp8": 8, "int4": 4}
INT4_GROUP = 128
INT4_GROUP_BITS = 16 + 4
"""A scale and a zero point for each group of 128 weights, in AWQ and GPTQ checkpoints alike."""
ACTIVATION_BYTES = 2
"""Of activations, embeddings, norms and lm_head: 16 bits whatever the linear layers are, unless they are fp32."""


def stored_bytes(num_weights: int, dtype: Dtype) -> int:
    """Bytes of a linear layer's weights, the scales of int4 included; those of fp8, one a layer, are not."""
    bits = num_weights * DTYPE_BITS[dtype]
    if dtype == "int4":
        bits += -(-num_weights // INT4_GROUP) * INT4_GROUP_BITS
    return -(-bits // 8)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A Llama-shaped model: attention with grouped KV heads, gated MLP (or experts that are such), RMSNorm."""

    name: str
    num_layers: int
    hidden_size: int
    intermediate_size: int
    """Of the MLP; of each expert where there are experts."""
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    dtype: Dtype = "bf16"
    """Of the linear layers' weights; bf16 stands for float16 too, whose size and speed are the same. fp32 is what all
    numbers are then: the real engine on a CPU."""
    tied_embeddings: bool = False
    """lm_head shares the embedding's weights."""
    attention_bias: bool = False
    """Q, K and V have a bias."""
    output_bias: bool = False
    """Attention's output projection has one."""
    qk_norm: bool = False
    """Q and K are normalised head by head."""
    norms_per_layer: int = 2
    """Gemma-2 normalises what attention and MLP give, too."""
    sliding_window: int | None = None
    """Tokens that attention reaches in a sliding layer, the newest included."""
    num_sliding_layers: int = 0
    num_experts: int = 0
    """In each layer; 0: a dense MLP."""
    experts_per_token: int = 0
    """Experts that a router picks for each token."""

    def __post_init__(self) -> None:
        if self.dtype not in DTYPE_BITS:
            raise ValueError(f"{self.name}: dtype {self.dtype!r} is unknown; choose {', '.join(DTYPE_BITS)}")
        for field in (
            "num_layers",
            "hidden_size",
            "intermediate_size",
            "num_heads",
            "num_kv_heads",
            "head_dim",
        ):
            if getattr(self, field) < 1:
                raise ValueError(f"{self.name}: {field} is {getattr(self, field)}; it must be at least 1")
        if self.vocab_size < 1 or self.max_position_embeddings < 1:
            raise ValueError(f"{self.name}: vocab_size and max_position_embeddings must be at least 1")
        if self.norms_per_layer < 1 or not 0 <= self.num_sliding_layers <= self.num_layers:
            raise ValueError(f"{self.name}: norms_per_layer must be at least 1, num_sliding_layers at most num_layers")
        if (self.sliding_window or 0) < 1 and self.num_sliding_layers:
            raise ValueError(f"{self.name}: sliding_window is {self.sliding_window}; sliding layers need at least 1")
        if not 0 <= self.experts_per_token <= self.num_experts or (self.num_experts and not self.experts_per_token):
            raise ValueError(f"{self.name}: {self.experts_per_token} experts a token cannot be of {self.num_experts}")
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"{self.name}: {self.num_heads} heads cannot share {self.num_kv_heads} KV heads evenly")

    @property
    def activation_bytes(self) -> int:
        """Of a number in activations, embeddings, norms and lm_head, and in a KV cache that is not quantized."""
        return 4 if self.dtype == "fp32" else ACTIVATION_BYTES

    @property
    def num_parameters(self) -> int:
        """Parameters of the whole model; tied embeddings count once."""
        return self.num_layers * (self._layer_linear(1) + self._layer_other(1)) + self._outer(1)

    def weight_bytes(self, tensor_parallel: int = 1) -> int:
        """Bytes of weights on each GPU."""
        linear = stored_bytes(self._layer_linear(tensor_parallel), self.dtype)
        other = self._layer_other(tensor_parallel) * self.activation_bytes
        return self.num_layers * (linear + other) + self._outer(tensor_parallel) * self.activation_bytes

    def kv_bytes_per_token(self, tensor_parallel: int = 1, kv_dtype_bytes: int | None = None) -> int:
        """KV bytes of a token on each GPU: K and V of every layer and KV head that the GPU holds.

        Sliding layers count in full: what falls out of their window is kept until the request ends. A number takes
        `kv_dtype_bytes`, those of an activation where left out.
        """
        number_bytes = kv_dtype_bytes or self.activation_bytes
        return 2 * self.num_layers * self.kv_heads_per_gpu(tensor_parallel) * self.head_dim * number_bytes

    def active_experts(self, num_tokens: int) -> float:
        """Distinct experts that a layer's tokens need, on average: as if the router picked evenly and at random."""
        left_out = 1 - self.experts_per_token / self.num_experts
        return self.num_experts * (1 - left_out**num_tokens)

    def heads_per_gpu(self, tensor_parallel: int) -> int:
        """Query heads on each GPU."""
        return self.num_heads // tensor_parallel

    def kv_heads_per_gpu(self, tensor_parallel: int) -> int:
        """KV heads on each GPU; with more GPUs than KV heads each GPU holds a copy of one."""
        return max(1, self.num_kv_heads // tensor_parallel)

    def qkv_width(self, tensor_parallel: int) -> int:
        """Output width of the fused Q, K, V projection on each GPU."""
        heads = self.heads_per_gpu(tensor_parallel) + 2 * self.kv_heads_per_gpu(tensor_parallel)
        return heads * self.head_dim

    def vocab_per_gpu(self, tensor_parallel: int) -> int:
        """Rows of the embedding, and of lm_head, on each GPU."""
        return -(-self.vocab_size // tensor_parallel)

    def check_tensor_parallel(self, tensor_parallel: int) -> None:
        """Raise ValueError where heads or MLP do not divide over that many GPUs."""
        if tensor_parallel < 1:
            raise ValueError(f"tensor_parallel is {tensor_parallel}; it must be at least 1")
        kv_heads = max(self.num_kv_heads, tensor_parallel)
        uneven = kv_heads % self.num_kv_heads or kv_heads % tensor_parallel
        if uneven or self.num_heads % tensor_parallel or self.intermediate_size % tensor_parallel:
            raise ValueError(
                f"{self.name} does not divide over tensor_parallel {tensor_parallel}: {self.num_heads} heads,"
                f" {self.num_kv_heads} KV heads, intermediate size {self.intermediate_size}"
            )

    def _layer_linear(self, tensor_parallel: int) -> int:
        attention = self.qkv_width(tensor_parallel) + self.heads_per_gpu(tensor_parallel) * self.head_dim
        mlp = 3 * self.intermediate_size // tensor_parallel * max(self.num_experts, 1)
        return self.hidden_size * (attention + mlp)

    def _layer_other(self, tensor_parallel: int) -> int:
        bias = self.qkv_width(tensor_parallel) if self.attention_bias else 0
        bias += self.hidden_size if self.output_bias else 0
        router = self.hidden_size * self.num_experts
        return self.norms_per_layer * self.hidden_size + router + bias + (2 * self.head_dim if self.qk_norm else 0)

    def _outer(self, tensor_parallel: int) -> int:
        tables = 1 if self.tied_embeddings else 2
        return self.hidden_size * (1 + tables * self.vocab_per_gpu(tensor_parallel))
