"""The kernels of a step of a transformer, as functions of its tokens, rows and contexts.

Sizes are those of one GPU under tensor parallelism. The weights of a linear layer are read once a step,
activations once by each kernel that uses them; what stays in a cache between two kernels is not modelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...policies.core.estimator import StepShape
from ...policies.core.model_spec import Dtype, ModelSpec, stored_bytes
from .kernel import Kernel

AttentionLoad = tuple[int, int, int]
"""What one launch of attention reads and multiplies, over all its sequences.

context_tokens   whose K and V are read, the new ones included
num_queries      new tokens
num_pairs        (query, key) pairs under the causal mask
"""


class AttentionGroup(NamedTuple):
    """Layers whose attention reaches equally far."""

    num_layers: int
    window: int | None
    """None: as far as the context."""


def decode_load(context_tokens: int, num_decodes: int, num_drafts: int, window: int | None = None) -> AttentionLoad:
    """The decodes' attention. Drafts are taken as spread evenly: each sees the mean context.

    A window is taken as if all contexts were equal: exact where all are within it or all beyond, else too much,
    as the sum of min(context, window) is at most min(sum of contexts, decodes x window).
    """
    if window is not None:
        context_tokens = min(context_tokens, num_decodes * window)
    drafted_pairs = context_tokens * num_drafts // max(num_decodes, 1)
    return context_tokens, num_decodes + num_drafts, context_tokens + drafted_pairs


def prefill_load(chunks: Sequence[tuple[int, int]], window: int | None = None) -> AttentionLoad:
    """The prefill chunks' attention: of q new tokens behind kv old ones the i-th sees min(kv + i, window)."""
    context = queries = pairs = 0
    for q, kv in chunks:
        queries += q
        whole = q if window is None else min(max(window - kv, 0), q)  # so many see all that is before them
        pairs += whole * kv + whole * (whole + 1) // 2
        if window is None:
            context += q + kv
        else:
            context += min(q + kv, q - 1 + window)
            pairs += (q - whole) * window
    return context, queries, pairs


@dataclass(frozen=True, slots=True)
class Transformer:
    """A model as laid out on `tensor_parallel` GPUs."""

    model: ModelSpec
    tensor_parallel: int
    kv_dtype_bytes: int

    def __post_init__(self) -> None:
        self.model.check_tensor_parallel(self.tensor_parallel)

    def token_kernels(self, num_tokens: int) -> list[Kernel]:
        """All kernels whose size depends on the step's number of tokens alone; none without tokens."""
        if num_tokens == 0:
            return []
        hidden = self.model.hidden_size
        around = [
            self._elementwise("embedding", 1, num_tokens * 2 * hidden),
            self._elementwise("final_norm", 1, num_tokens * 4 * hidden),
        ]
        return around + self._linear_layers(num_tokens) + self._small_kernels(num_tokens)

    def row_kernels(self, num_rows: int) -> list[Kernel]:
        """lm_head and sampler for that many rows; none without rows.

        The sampler turns the logits into fp32 and reads them once more, for the largest.
        """
        if num_rows == 0:
            return []
        vocab = self.model.vocab_per_gpu(self.tensor_parallel)
        return [
            self._linear("lm_head", 1, num_rows, self.model.hidden_size, vocab, self.model.activation_dtype),
            Kernel(
                "sampler",
                "elementwise",
                1,
                num_bytes=num_rows * self.model.vocab_size * (self.model.activation_bytes + 4 + 4),
            ),
        ]

    def attention_groups(self) -> list[AttentionGroup]:
        """The layers by how far their attention reaches; those that reach furthest first."""
        model = self.model
        groups = [
            AttentionGroup(model.num_layers - model.num_sliding_layers, None),
            AttentionGroup(model.num_sliding_layers, model.sliding_window),
        ]
        return [group for group in groups if group.num_layers]

    def attention_kernel(
        self, name: str, num_layers: int, context_tokens: int, num_queries: int, num_pairs: int
    ) -> Kernel:
        """A layer's attention: reads Q, K and V, writes the output; 4 FLOPs a pair, head and dimension."""
        width = self.model.heads_per_gpu(self.tensor_parallel) * self.model.head_dim
        kv_width = self.model.kv_heads_per_gpu(self.tensor_parallel) * self.model.head_dim
        kv_bytes = 2 * kv_width * self.kv_dtype_bytes * context_tokens
        query_bytes = 2 * width * self.model.activation_bytes * num_queries
        return Kernel(
            name,
            "attention",
            num_layers,
            flops=4 * width * num_pairs,
            num_bytes=kv_bytes + query_bytes,
            dtype=self.model.activation_dtype,
        )

    def step_kernels(self, shape: StepShape) -> list[Kernel]:
        """Every kernel of a step of this shape."""
        num_prefills = sum(q for q, _ in shape.prefill_chunks)
        num_decoded = shape.num_decodes + shape.num_drafts
        kernels = self.token_kernels(num_prefills + num_decoded)
        for layers, window in self.attention_groups():
            kind = "attention" if window is None else "sliding_attention"
            if num_prefills:
                prefill = prefill_load(shape.prefill_chunks, window)
                kernels.append(self.attention_kernel(f"prefill_{kind}", layers, *prefill))
            if num_decoded:
                decode = decode_load(shape.decode_context_tokens, shape.num_decodes, shape.num_drafts, window)
                kernels.append(self.attention_kernel(f"decode_{kind}", layers, *decode))
        return kernels + self.row_kernels(shape.num_samples + shape.num_drafts)

    def _linear_layers(self, num_tokens: int) -> list[Kernel]:
        model, gpus = self.model, self.tensor_parallel
        intermediate, attention = model.intermediate_size // gpus, model.heads_per_gpu(gpus) * model.head_dim
        sizes = [
            ("qkv", model.hidden_size, model.qkv_width(gpus)),
            ("o", attention, model.hidden_size),
        ]
        if not model.num_experts:
            sizes += [("gate_up", model.hidden_size, 2 * intermediate), ("down", intermediate, model.hidden_size)]
        kernels = [
            self._linear(name, model.num_layers, num_tokens, width_in, width_out, model.dtype)
            for name, width_in, width_out in sizes
        ]
        return kernels + (self._experts(num_tokens) if model.num_experts else [])

    def _experts(self, num_tokens: int) -> list[Kernel]:
        layers, model = self.model.num_layers, self.model
        return [
            self._linear("router", layers, num_tokens, model.hidden_size, model.num_experts, model.activation_dtype),
            self.moe_kernel(num_tokens, model.active_experts(num_tokens)),
        ]

    def moe_kernel(self, num_tokens: int, active_experts: float) -> Kernel:
        """A layer's experts: the weights of those that are active, once; every token through those picked for it.

        Gate and up, their product, and down in one, as fused kernels do; the product stays in memory between.
        """
        model = self.model
        intermediate, rows = model.intermediate_size // self.tensor_parallel, num_tokens * model.experts_per_token
        weights = 3 * model.hidden_size * intermediate
        activations = rows * (2 * model.hidden_size + 6 * intermediate) * model.activation_bytes
        return Kernel(
            "moe",
            "linear",
            model.num_layers,
            flops=2 * rows * weights,
            num_bytes=stored_bytes(round(active_experts * weights), model.dtype) + activations,
            dtype=model.dtype,
        )

    def _small_kernels(self, num_tokens: int) -> list[Kernel]:
        """Norms read and write the residual too, rope and QK norm rewrite Q and K, act halves its width."""
        model, gpus, layers = self.model, self.tensor_parallel, self.model.num_layers
        kv_width = model.kv_heads_per_gpu(gpus) * model.head_dim
        query_key = model.qkv_width(gpus) - kv_width
        kernels = [
            self._elementwise("norm", model.norms_per_layer * layers, num_tokens * 4 * model.hidden_size),
            self._elementwise("rope", layers, num_tokens * 2 * query_key),
            Kernel(
                "kv_write",
                "kv_write",
                layers,
                num_bytes=num_tokens * 2 * kv_width * (model.activation_bytes + self.kv_dtype_bytes),
            ),
        ]
        if not model.num_experts:
            kernels.append(self._elementwise("act", layers, num_tokens * 3 * model.intermediate_size // gpus))
        if model.qk_norm:
            kernels.append(self._elementwise("qk_norm", layers, num_tokens * 2 * query_key))
        if gpus > 1:
            size = num_tokens * model.hidden_size * model.activation_bytes
            kernels.append(Kernel("all_reduce", "all_reduce", 2 * layers, link_bytes=size))
        return kernels

    def _linear(self, name: str, launches: int, rows: int, width_in: int, width_out: int, dtype: Dtype) -> Kernel:
        weights = width_in * width_out
        activations = rows * (width_in + width_out) * self.model.activation_bytes
        return Kernel(
            name,
            "linear",
            launches,
            flops=2 * rows * weights,
            num_bytes=stored_bytes(weights, dtype) + activations,
            dtype=dtype,
        )

    def _elementwise(self, name: str, launches: int, num_elements: int) -> Kernel:
        return Kernel(name, "elementwise", launches, num_bytes=num_elements * self.model.activation_bytes)
