"""One step on the device: inputs, the model, a token for each sequence that is due one, the state after it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .attention_inputs import AttentionInputs, KVStorage
from .contents import hashed_on_device
from .device_state import KEY, PROMPT, DeviceState
from .graphs import DecodeGraphs
from .model.transformer import Transformer
from .step_work import StepWork
from .upload import Uploader


class StepRunner:
    """Runs steps in order. Nothing here waits for the device, or reads from it."""

    def __init__(
        self, model: Transformer, kv: KVStorage, state: DeviceState, uploader: Uploader, *, forces_outputs: bool
    ) -> None:
        self.model = model
        self.graphs: DecodeGraphs | None = None
        self._kv = kv
        self._state = state
        self._uploader = uploader
        self._forces_outputs = forces_outputs
        self._no_rows = torch.zeros(0, dtype=torch.int32, device=state.device)
        self._no_starts = torch.zeros(1, dtype=torch.int32, device=state.device)

    def run(self, work: StepWork, *, is_random: bool) -> Tensor:
        """Tokens sampled [num_sampled], decode batch first, and whether all was finite; int64, on the device.

        `is_random`: some request has a temperature.
        """
        if len(work.tail_tokens):
            return self._run_mixed(work, is_random=is_random)
        graph = self.graphs.fitting(work.num_members, is_random=is_random) if self.graphs else None
        if graph is not None:
            return graph.replay(work.num_members)
        return self.decode(work.num_members, is_random=is_random)

    def decode(self, num_rows: int, *, is_random: bool) -> Tensor:
        """A token for the first `num_rows` of the decode batch, padding included; as `run`."""
        state = self._state
        rows = state.members[:num_rows]
        is_live = rows > 0
        positions = torch.where(is_live, state.contexts[rows], 0)
        contexts = torch.where(is_live, positions + 1, 0)
        slots = torch.where(is_live, self._slots(rows, positions), -1)
        narrow = rows.to(torch.int32)
        inputs = AttentionInputs(
            num_decodes=num_rows,
            positions=positions,
            slots=slots,
            block_tables=state.tables,
            decode_rows=narrow,
            decode_context_lens=contexts.to(torch.int32),
            chunk_rows=self._no_rows,
            query_starts=self._no_starts,
            chunk_context_lens=self._no_rows,
            max_query_len=0,
        )
        hidden = self.model.forward(state.tokens[rows], inputs, self._kv)
        return self._deliver(hidden, hidden, rows, contexts, is_random=is_random)

    def _run_mixed(self, work: StepWork, *, is_random: bool) -> Tensor:
        state, n = self._state, work.num_members
        num_decodes = n + work.num_singles
        tail_samples = np.concatenate([np.arange(n), work.tail_samples + n])
        arrays = [work.tail_tokens, work.tail_rows, work.tail_positions, work.unknown_at]
        arrays += [work.chunk_rows, work.query_starts, work.chunk_contexts, tail_samples]
        tokens, tail_rows, tail_positions, unknown, chunk_rows, starts, contexts, sampled = self._uploader.send(arrays)
        if len(work.unknown_at):
            tokens[unknown] = state.tokens[tail_rows[unknown]]
        members = state.members[:n]
        rows = torch.cat([members, tail_rows])
        positions = torch.cat([state.contexts[members], tail_positions])
        inputs = AttentionInputs(
            num_decodes=num_decodes,
            positions=positions,
            slots=self._slots(rows, positions),
            block_tables=state.tables,
            decode_rows=rows[:num_decodes].to(torch.int32),
            decode_context_lens=(positions[:num_decodes] + 1).to(torch.int32),
            chunk_rows=chunk_rows.to(torch.int32),
            query_starts=starts.to(torch.int32),
            chunk_context_lens=contexts.to(torch.int32),
            max_query_len=work.max_query_len,
        )
        hidden = self.model.forward(torch.cat([state.tokens[members], tokens]), inputs, self._kv)
        after = positions[sampled] + 1
        return self._deliver(hidden, hidden[sampled], rows[sampled], after, is_random=is_random)

    def _slots(self, rows: Tensor, positions: Tensor) -> Tensor:
        """Where tokens at these positions of these rows go: [T] int64."""
        size = self._kv.block_size
        blocks = self._state.tables[rows, positions // size].to(torch.int64)
        return blocks * size + positions % size

    def _deliver(self, hidden: Tensor, sampled: Tensor, rows: Tensor, contexts: Tensor, *, is_random: bool) -> Tensor:
        """Choose a token for each of rows [S], whose context is now contexts [S]; note it as its next input."""
        tokens, is_finite, state = rows, _all_finite(hidden), self._state
        if len(rows):
            logits = self.model.logits(sampled)
            tokens = self._choose(logits, rows, contexts, is_random=is_random)
            is_finite = is_finite & _all_finite(logits)
        state.tokens[rows] = tokens
        state.contexts[rows] = contexts
        return torch.cat([tokens, is_finite.to(torch.int64)])

    def _choose(self, logits: Tensor, rows: Tensor, contexts: Tensor, *, is_random: bool) -> Tensor:
        """Tokens [S]. Where outputs are forced one is sampled all the same, since that takes its time."""
        kernels = self.model.kernels
        if is_random:
            temperatures, top_ks, top_ps, seeds = self._state.sampling(rows)
            chosen = kernels.sample(logits, temperatures, top_ks, top_ps, seeds, contexts)
        else:
            chosen = kernels.greedy(logits)
        if not self._forces_outputs:
            return chosen
        lines = self._state.info[rows]
        return hashed_on_device(lines[:, KEY], contexts - lines[:, PROMPT], self.model.config.spec.vocab_size)


def _all_finite(values: Tensor) -> Tensor:
    """[1] bool: whether no value is a NaN or infinite; a sum in fp32 overflows by nothing else."""
    return torch.isfinite(values.sum(dtype=torch.float32)).reshape(1)
