"""Runs one step again and again, on the path that the executor's steps take."""

from __future__ import annotations

import numpy as np
import torch

from ..attention_inputs import KVStorage
from ..device_state import DeviceState
from ..graphs import DecodeGraphs, can_capture
from ..mirror import Changes
from ..model.transformer import Transformer
from ..runner import StepRunner
from ..step_work import StepWork
from ..streams import host_clock
from ..upload import Uploader
from .marks import marks_for
from .steps import BLOCK_SIZE, TimedStep
from .watched import WatchedModel, kernel_times


class StepBench:
    """A model with KV memory, block tables and a decode batch, set up for one step at a time."""

    def __init__(self, model: Transformer, num_blocks: int, max_rows: int, max_context: int, seed: int = 0) -> None:
        """KV for `num_blocks`, block 0 of nobody included; rows of at most `max_context` tokens."""
        device = model.device
        self.device = device
        self.num_blocks = num_blocks
        self._rng = np.random.default_rng(seed)
        self._vocab_size = model.config.spec.vocab_size
        self._kv = _filled_kv(model, num_blocks)
        self._state = DeviceState(max_rows, -(-max_context // BLOCK_SIZE), device)
        self._marks = marks_for(device)
        self._clock = host_clock()
        uploader = Uploader(device)
        watched = WatchedModel(model, self._marks)
        self._plain = StepRunner(model, self._kv, self._state, uploader, forces_outputs=True)
        self._watched = StepRunner(watched, self._kv, self._state, uploader, forces_outputs=True)
        if can_capture(device, model.kernels):
            runner = self._plain
            with torch.inference_mode():
                runner.graphs = DecodeGraphs(lambda rows, random: runner.decode(rows, is_random=random), max_rows)
        self._contexts = self._state.contexts.clone()
        self._work = StepWork(0, Changes(), 0)

    @torch.inference_mode()
    def prepare(self, step: TimedStep) -> None:
        """Set up rows, block tables and inputs of a step: blocks scattered over the memory, as in a long run."""
        state, lengths = self._state, step.lengths
        needed = [-(-length // BLOCK_SIZE) for length in lengths]
        order = self._rng.permutation(self.num_blocks - 1)[: sum(needed)] + 1
        tables = np.zeros(state.tables.shape, np.int32)
        ends = np.cumsum(needed).tolist()
        for row, (end, count) in enumerate(zip(ends, needed, strict=True), 1):
            tables[row, :count] = order[end - count : end]
        tables[2 : len(step.contexts) + 1, : step.common // BLOCK_SIZE] = tables[1, : step.common // BLOCK_SIZE]
        state.tables.copy_(torch.from_numpy(tables))
        num_decodes = len(step.contexts)
        state.members.zero_()
        state.members[:num_decodes] = torch.arange(1, num_decodes + 1, device=self.device)
        self._contexts.zero_()
        self._contexts[1 : num_decodes + 1] = torch.tensor(step.contexts, dtype=torch.int64, device=self.device) - 1
        state.tokens.random_(0, self._vocab_size)
        self._work = self._work_of(step)

    def whole_us(self) -> float:
        """Run the prepared step without marks, with a graph where it has one; its time on the device."""
        return self._run(self._plain)

    def watched_us(self) -> tuple[float, dict[str, list[float]]]:
        """Run it with marks, launch by launch: their time, and that of each launch of each kernel."""
        self._marks.forget()
        self._run(self._watched)
        intervals = self._marks.read()
        return sum(interval.us for interval in intervals), kernel_times(intervals)

    def _work_of(self, step: TimedStep) -> StepWork:
        num_decodes = len(step.contexts)
        lengths = np.array([q for q, _ in step.chunks], np.int64)
        rows = np.arange(num_decodes + 1, num_decodes + 1 + len(lengths), dtype=np.int64)
        positions = [np.arange(kv, kv + q) for q, kv in step.chunks]
        total = int(lengths.sum())
        return StepWork(
            step=0,
            changes=Changes(),
            num_members=num_decodes,
            tail_tokens=self._rng.integers(self._vocab_size, size=total),
            tail_rows=np.repeat(rows, lengths),
            tail_positions=np.concatenate(positions) if positions else np.zeros(0, np.int64),
            chunk_rows=rows,
            query_starts=np.concatenate([[0], np.cumsum(lengths)]),
            chunk_contexts=np.array([q + kv for q, kv in step.chunks], np.int64),
            max_query_len=int(lengths.max(initial=0)),
            tail_samples=np.cumsum(lengths) - 1,
        )

    @torch.inference_mode()
    def _run(self, runner: StepRunner) -> float:
        """The prepared step, from the state before it."""
        self._state.contexts.copy_(self._contexts)
        if self.device.type != "cuda":
            start_ns = self._clock()
            runner.run(self._work, is_random=False).numpy()
            return (self._clock() - start_ns) / 1e3
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        runner.run(self._work, is_random=False)
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e3


def blocks_of(step: TimedStep) -> int:
    """KV blocks that a step's sequences have."""
    return sum(-(-length // BLOCK_SIZE) for length in step.lengths)


def block_bytes(model: Transformer) -> int:
    """Bytes of a KV block over all layers."""
    return model.config.spec.kv_bytes_per_token(kv_dtype_bytes=model.dtype.itemsize) * BLOCK_SIZE


def _filled_kv(model: Transformer, num_blocks: int) -> KVStorage:
    """KV memory full of numbers of a size that a model's have: with zeros every weight of attention would be equal."""
    spec = model.config.spec
    shape = (num_blocks, spec.num_kv_heads, BLOCK_SIZE, spec.head_dim)
    first = torch.empty(shape, dtype=model.dtype, device=model.device).uniform_(-1, 1)
    caches = [first, *(first.clone() for _ in range(2 * spec.num_layers - 1))]
    return KVStorage(tuple(caches[0::2]), tuple(caches[1::2]))
