"""Where the tokens of one step stand: what attention and the KV write need beside activations."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class AttentionInputs:
    """One step's tokens: first `num_decodes` decodes with one token each, then chunks one after another.

    Letters and the meaning of rows, tables and slots are those of `kernels.contract`.
    """

    num_decodes: int
    positions: Tensor
    """[T] int64."""
    slots: Tensor
    """[T] int64: where each token's K and V go."""
    block_tables: Tensor
    """[R, max_blocks] int32."""
    decode_rows: Tensor
    """[num_decodes] int32."""
    decode_context_lens: Tensor
    """[num_decodes] int32, this step's token included; 0 for padding."""
    chunk_rows: Tensor
    """[C] int32."""
    query_starts: Tensor
    """[C + 1] int32, counted from the first token after the decodes."""
    chunk_context_lens: Tensor
    """[C] int32, this step's tokens included."""
    max_query_len: int
    """Of the chunks; 0 without any."""


@dataclass(frozen=True, slots=True)
class KVStorage:
    """The KV cache of all layers, each [num_blocks, KVH, block_size, D]."""

    k: tuple[Tensor, ...]
    v: tuple[Tensor, ...]

    @property
    def num_blocks(self) -> int:
        """Blocks, block 0 included, which belongs to nobody."""
        return self.k[0].shape[0]

    @property
    def block_size(self) -> int:
        """Tokens a block."""
        return self.k[0].shape[2]
