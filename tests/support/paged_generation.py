"""Generates with a Transformer whose steps, chunks, blocks and shared prefixes a test chooses itself."""

from __future__ import annotations

import random
from collections.abc import Sequence as Items
from dataclasses import dataclass, field

import torch
from torch import Tensor

from llmsim.real_engine.attention_inputs import AttentionInputs, KVStorage
from llmsim.real_engine.model.transformer import Transformer

MAX_BLOCKS = 32
"""Of a sequence."""


@dataclass
class PagedSequence:
    """One sequence: `tokens` is its prompt, then what it has sampled."""

    tokens: list[int]
    row: int
    forced: list[int] = field(default_factory=list)
    """What it samples instead of the likeliest token, as long as there are any left."""
    blocks: list[int] = field(default_factory=list)
    computed: int = 0
    logits: list[Tensor] = field(default_factory=list)
    """[vocab] of each token that it sampled."""

    @property
    def is_decoding(self) -> bool:
        """Whether only its last token, a sampled one, is still to be computed."""
        return bool(self.logits) and self.computed == len(self.tokens) - 1


class PagedGeneration:
    """Sequences over a KV cache full of NaN, whose blocks are taken in random order."""

    def __init__(self, model: Transformer, *, seed: int, num_blocks: int = 64, block_size: int = 16) -> None:
        spec = model.config.spec
        shape = (num_blocks, spec.num_kv_heads, block_size, spec.head_dim)

        def cache() -> Tensor:
            return torch.full(shape, torch.nan, dtype=model.dtype)

        self.model = model
        self.kv = KVStorage(
            tuple(cache() for _ in range(spec.num_layers)), tuple(cache() for _ in range(spec.num_layers))
        )
        self.sequences: list[PagedSequence] = []
        self._random = random.Random(seed)
        self._free = list(range(1, num_blocks))
        self._random.shuffle(self._free)

    def add(self, prompt: Items[int], *, forced: Items[int] = ()) -> PagedSequence:
        """A sequence of which nothing is computed."""
        self.sequences.append(PagedSequence(list(prompt), len(self.sequences), list(forced)))
        return self.sequences[-1]

    def share(self, of: PagedSequence, to: PagedSequence, num_blocks: int) -> None:
        """A prefix hit: `to` starts behind full blocks that `of` has computed."""
        num_tokens = num_blocks * self.kv.block_size
        assert of.tokens[:num_tokens] == to.tokens[:num_tokens]
        assert num_tokens <= of.computed
        assert num_tokens < len(to.tokens)
        assert not to.blocks
        to.blocks, to.computed = of.blocks[:num_blocks], num_tokens

    def run(self, num_outputs: int, *, max_chunk: int = 9) -> None:
        """Steps of random company and random chunks until each sequence has so many outputs."""
        while unfinished := [s for s in self.sequences if len(s.logits) < num_outputs]:
            company = self._random.sample(unfinished, self._random.randint(1, len(unfinished)))
            chunks = [(s, self._chunk_of(s, max_chunk)) for s in company if not s.is_decoding]
            self.step([s for s in company if s.is_decoding], chunks, num_padding=self._random.randint(0, 1))

    def step(
        self, decodes: Items[PagedSequence], chunks: Items[tuple[PagedSequence, int]], *, num_padding: int = 0
    ) -> None:
        """Compute one token of each decode, some of each chunk, and sample where all is computed.

        Padding is decodes of nobody behind the others, as a CUDA graph for more sequences has them.
        """
        grants = [*((s, 1) for s in decodes), *chunks]
        for sequence, num_tokens in grants:
            self._allocate(sequence, sequence.computed + num_tokens)
        inputs, tokens = self._inputs(decodes, chunks, num_padding)
        hidden = self.model.forward(tokens, inputs, self.kv)
        ends = torch.tensor([n for _, n in grants]).cumsum(0) - 1
        ends[len(decodes) :] += num_padding
        for (sequence, num_tokens), logits in zip(grants, self.model.logits(hidden[ends]), strict=True):
            sequence.computed += num_tokens
            if sequence.computed == len(sequence.tokens):
                sequence.logits.append(logits)
                sequence.tokens.append(sequence.forced.pop(0) if sequence.forced else int(logits.argmax()))

    def _chunk_of(self, sequence: PagedSequence, max_chunk: int) -> int:
        return self._random.randint(1, min(max_chunk, len(sequence.tokens) - sequence.computed))

    def _allocate(self, sequence: PagedSequence, num_tokens: int) -> None:
        while len(sequence.blocks) * self.kv.block_size < num_tokens:
            sequence.blocks.append(self._free.pop())

    def _inputs(
        self, decodes: Items[PagedSequence], chunks: Items[tuple[PagedSequence, int]], num_padding: int
    ) -> tuple[AttentionInputs, Tensor]:
        places = [(s, s.computed) for s in decodes]
        places_of_chunks = [(s, s.computed + offset) for s, num_tokens in chunks for offset in range(num_tokens)]
        padding = [0] * num_padding
        tokens = [s.tokens[p] for s, p in places] + padding + [s.tokens[p] for s, p in places_of_chunks]
        slots = [self._slot(*p) for p in places] + [-1] * num_padding + [self._slot(*p) for p in places_of_chunks]
        inputs = AttentionInputs(
            num_decodes=len(decodes) + num_padding,
            positions=torch.tensor([p for _, p in places] + padding + [p for _, p in places_of_chunks]),
            slots=torch.tensor(slots),
            block_tables=self._block_tables(),
            decode_rows=_int32([s.row for s in decodes] + padding),
            decode_context_lens=_int32([s.computed + 1 for s in decodes] + padding),
            chunk_rows=_int32([s.row for s, _ in chunks]),
            query_starts=_int32([0, *(n for _, n in chunks)]).cumsum(0, dtype=torch.int32),
            chunk_context_lens=_int32([s.computed + n for s, n in chunks]),
            max_query_len=max((n for _, n in chunks), default=0),
        )
        return inputs, torch.tensor(tokens)

    def _slot(self, sequence: PagedSequence, position: int) -> int:
        block_size = self.kv.block_size
        return sequence.blocks[position // block_size] * block_size + position % block_size

    def _block_tables(self) -> Tensor:
        return _int32([s.blocks + [0] * (MAX_BLOCKS - len(s.blocks)) for s in self.sequences])


def _int32(values: list[int] | list[list[int]]) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)
