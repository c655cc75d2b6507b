"""The forward pass: tokens of a step in, hidden states out, keys and values into the cache on the way.

    T  tokens of the step: first the decodes, then chunks of prompts, as AttentionInputs says

Nothing here depends on how many tokens or sequences there are, and nothing waits for the device: a step of decodes
can be captured in a CUDA graph.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear

from ...kernels.contract import Kernels
from ..attention_inputs import AttentionInputs, KVStorage
from .config import ModelConfig
from .weights import LayerWeights, Weights


class Transformer:
    """A Llama-shaped model on one device."""

    def __init__(self, config: ModelConfig, weights: Weights, kernels: Kernels) -> None:
        """The weights' dtype and device are the model's; the rotary table is made here."""
        spec = config.spec
        self.config = config
        self.weights = weights
        self.kernels = kernels
        self.device = weights.embedding.device
        self.dtype = weights.embedding.dtype
        self._cos_sin = config.rope.cos_sin(spec.head_dim, spec.max_position_embeddings, self.device)
        self._scale = spec.head_dim**-0.5
        self._norms_after = (*(layer.input_norm for layer in weights.layers[1:]), weights.final_norm)

    @torch.inference_mode()
    def forward(self, tokens: Tensor, inputs: AttentionInputs, kv: KVStorage) -> Tensor:
        """Hidden states [T, hidden] after the final norm, of tokens [T] int64; writes their K and V into `kv`."""
        weights, kernels, eps = self.weights, self.kernels, self.config.rms_norm_eps
        residual = embedding(tokens, weights.embedding)
        x = kernels.rms_norm(residual, weights.layers[0].input_norm, eps)
        for layer, norm_after, k_cache, v_cache in zip(weights.layers, self._norms_after, kv.k, kv.v, strict=True):
            x = self._attention(layer, x, inputs, k_cache, v_cache)
            x = kernels.add_rms_norm(x, residual, layer.post_norm, eps)
            x = linear(kernels.silu_mul(linear(x, layer.gate_up)), layer.down)
            x = kernels.add_rms_norm(x, residual, norm_after, eps)
        return x

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """[S, vocab] of hidden states [S, hidden], in the model's dtype."""
        return linear(hidden, self.weights.lm_head)

    def _attention(
        self, layer: LayerWeights, x: Tensor, inputs: AttentionInputs, k_cache: Tensor, v_cache: Tensor
    ) -> Tensor:
        """[T, hidden]: what attention adds to the residual stream, of x [T, hidden]."""
        spec, kernels = self.config.spec, self.kernels
        heads = linear(x, layer.qkv, layer.qkv_bias).view(x.shape[0], -1, spec.head_dim)
        q, k, v = heads.split_with_sizes((spec.num_heads, spec.num_kv_heads, spec.num_kv_heads), dim=1)
        if layer.q_norm is not None and layer.k_norm is not None:
            kernels.qk_norm(q, k, layer.q_norm, layer.k_norm, self.config.rms_norm_eps)
        kernels.rope(q, k, inputs.positions, self._cos_sin)
        kernels.write_kv(k, v, k_cache, v_cache, inputs.slots)
        attended = self._attend(q, inputs, k_cache, v_cache)
        return linear(attended.flatten(1), layer.output, layer.output_bias)

    def _attend(self, q: Tensor, inputs: AttentionInputs, k_cache: Tensor, v_cache: Tensor) -> Tensor:
        """[T, H, D] of q [T, H, D]: decodes by one kernel, chunks by the other."""
        num_decodes = inputs.num_decodes
        if num_decodes == q.shape[0]:
            return self._attend_decodes(q, inputs, k_cache, v_cache)
        if not num_decodes:
            return self._attend_chunks(q, inputs, k_cache, v_cache)
        decodes = self._attend_decodes(q[:num_decodes], inputs, k_cache, v_cache)
        return torch.cat((decodes, self._attend_chunks(q[num_decodes:], inputs, k_cache, v_cache)))

    def _attend_decodes(self, q: Tensor, inputs: AttentionInputs, k_cache: Tensor, v_cache: Tensor) -> Tensor:
        rows, context_lens = inputs.decode_rows, inputs.decode_context_lens
        return self.kernels.decode_attention(q, k_cache, v_cache, inputs.block_tables, rows, context_lens, self._scale)

    def _attend_chunks(self, q: Tensor, inputs: AttentionInputs, k_cache: Tensor, v_cache: Tensor) -> Tensor:
        return self.kernels.extend_attention(
            q,
            k_cache,
            v_cache,
            inputs.block_tables,
            inputs.chunk_rows,
            inputs.query_starts,
            inputs.chunk_context_lens,
            inputs.max_query_len,
            self._scale,
        )
