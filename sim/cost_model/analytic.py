"""The analytic cost model: a step's kernels on the roofline of a GPU that nobody has to own.

Times are integers throughout (see ticks.py): a stretch of steps priced at once equals the same steps priced
one by one, to the nanosecond.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...policies.core.estimator import StepCost, StepShape
from ...policies.core.gpu_spec import GpuSpec
from ...policies.core.model_spec import ACTIVATION_BYTES, ModelSpec
from .roofline import Efficiencies, Roofline
from .ticks import (
    ROUND_UP,
    TICK_BITS,
    DecodeLines,
    Ticks,
    attention_ticks,
    decode_lines,
    kernel_ticks,
)
from .transformer import Transformer, decode_load, prefill_load


class StretchCost(NamedTuple):
    """What each of a stretch of steps costs, in integer nanoseconds, each [num_steps] int64."""

    device_ns: NDArray[np.int64]
    host_ns: NDArray[np.int64]
    compute_ns: NDArray[np.int64]
    memory_ns: NDArray[np.int64]

    @property
    def extrapolated(self) -> NDArray[np.bool_]:
        """No step leaves a measured grid: there is none."""
        return np.zeros(len(self.device_ns), dtype=np.bool_)

    @property
    def share(self) -> None:
        """Nothing was measured at all."""


class AnalyticCostModel:
    """Prices steps of `model` on `tensor_parallel` GPUs by their data sheet. A StepTimeEstimator.

    What depends on a step's number of tokens, or of rows, is priced once for each number and remembered;
    attention is linear in what it reads and computes. An empty step costs no device time, but the host's time
    for a step: a loop that finds nothing to run has still looked. ValueError where the model and the GPUs do
    not go together.
    """

    def __init__(
        self,
        model: ModelSpec,
        gpu: GpuSpec,
        tensor_parallel: int = 1,
        efficiencies: Efficiencies | None = None,
        kv_dtype_bytes: int = ACTIVATION_BYTES,
    ) -> None:
        self.transformer = Transformer(model, tensor_parallel, kv_dtype_bytes)
        self.roofline = Roofline(gpu, efficiencies or Efficiencies())
        self._host_step_ns = round(self.roofline.efficiencies.host_step_s * 1e9)
        self._host_request_ns = round(self.roofline.efficiencies.host_request_s * 1e9)
        self._attention = attention_ticks(self.transformer, self.roofline)
        self._window = model.sliding_window
        self._decodes: dict[int, DecodeLines] = {}
        self._decodes_beyond: dict[int, DecodeLines] = {}
        self._tokens: dict[int, Ticks] = {}
        self._rows: dict[int, Ticks] = {}
        self._price_tokens(1)  # a model and a GPU that do not go together are refused here

    def step_cost(self, shape: StepShape) -> StepCost:
        """Cost of one step of this shape."""
        chunks, num_decodes, context, _, num_samples, num_drafts, *_ = shape
        if chunks or num_drafts or num_samples != num_decodes:
            return self._mixed_cost(shape)
        lines = self._decodes.get(num_decodes) or self._price_decodes(num_decodes)
        if self._window is not None and context > num_decodes * self._window:
            lines = self._decodes_beyond[num_decodes]
        read, read_slope, multiply, multiply_slope, compute, compute_slope, memory, memory_slope = lines
        read += context * read_slope
        multiply += context * multiply_slope
        return StepCost(
            (read if read > multiply else multiply) >> TICK_BITS,
            self._host_step_ns + num_decodes * self._host_request_ns,
            (compute + context * compute_slope) >> TICK_BITS,
            (memory + context * memory_slope) >> TICK_BITS,
        )

    def decode_stretch(
        self, num_decodes: int, context_tokens: int, max_context: int, num_steps: int, shared_tokens: int = 0
    ) -> StretchCost:
        """Costs of `num_steps` steps of the same decodes, whose contexts grow by one each step.

        `context_tokens` (summed) and `max_context` are the first step's; `max_context` and `shared_tokens` are for
        models that see them. Equal, to the nanosecond, to asking for each step alone.
        """
        assert num_decodes > 0, f"a stretch of {num_decodes} decodes"
        lines = self._decodes.get(num_decodes) or self._price_decodes(num_decodes)
        steepest = max(lines.reading_slope, lines.multiplying_slope)
        longest = max(lines[0], lines[2]) + (context_tokens + num_decodes * num_steps) * steepest
        dtype: type = np.int64 if longest < 2**63 else object  # Python's integers where a step takes half a minute
        context: NDArray[Any] = context_tokens + num_decodes * np.arange(num_steps, dtype=dtype)
        device, compute, memory = _along(lines, context)
        if self._window is not None:
            slid = context > num_decodes * self._window
            beyond = _along(self._decodes_beyond[num_decodes], context)
            device, compute, memory = np.where(slid, beyond, (device, compute, memory))
        host_ns = self._host_step_ns + num_decodes * self._host_request_ns
        return StretchCost(device, np.full(num_steps, host_ns, dtype=np.int64), compute, memory)

    def _mixed_cost(self, shape: StepShape) -> StepCost:
        chunks, num_decodes, context, _, num_samples, num_drafts, *_ = shape
        num_tokens = sum([q for q, _ in chunks]) + num_decodes + num_drafts
        device = compute = memory = 0
        for group in self._attention:
            if chunks:
                prefill = group.price(*prefill_load(chunks, group.window))
                device, compute, memory = device + prefill[0], compute + prefill[1], memory + prefill[2]
            if num_decodes or num_drafts:
                decode = group.price(*decode_load(context, num_decodes, num_drafts, group.window))
                device, compute, memory = device + decode[0], compute + decode[1], memory + decode[2]
        num_rows = num_samples + num_drafts
        linear = self._tokens.get(num_tokens) or self._price_tokens(num_tokens)
        head = self._rows.get(num_rows) or self._price_rows(num_rows)
        return StepCost(
            (device + linear[0] + head[0] + ROUND_UP) >> TICK_BITS,
            self._host_step_ns + (num_decodes + len(chunks)) * self._host_request_ns,
            (compute + linear[1] + head[1]) >> TICK_BITS,
            (memory + linear[2] + head[2]) >> TICK_BITS,
        )

    def _price_decodes(self, num_decodes: int) -> DecodeLines:
        linear, head = self._price_tokens(num_decodes), self._price_rows(num_decodes)
        lines = self._decodes[num_decodes] = decode_lines(num_decodes, linear, head, self._attention)
        if self._window is not None:
            beyond = decode_lines(num_decodes, linear, head, self._attention, beyond=True)
            self._decodes_beyond[num_decodes] = beyond
        return lines

    def _price_tokens(self, num_tokens: int) -> Ticks:
        kernels = self.transformer.token_kernels(num_tokens)
        ticks = self._tokens[num_tokens] = kernel_ticks(kernels, self.roofline)
        return ticks

    def _price_rows(self, num_rows: int) -> Ticks:
        kernels = self.transformer.row_kernels(num_rows)
        ticks = self._rows[num_rows] = kernel_ticks(kernels, self.roofline)
        return ticks


def _along(lines: DecodeLines, context: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Nanoseconds of the device and its two floors at these summed contexts."""
    read = lines.reading + context * lines.reading_slope
    multiply = lines.multiplying + context * lines.multiplying_slope
    return (
        _nanoseconds(np.maximum(read, multiply)),
        _nanoseconds(lines.compute + context * lines.compute_slope),
        _nanoseconds(lines.memory + context * lines.memory_slope),
    )


def _nanoseconds(ticks: NDArray[Any]) -> NDArray[np.int64]:
    return (ticks >> TICK_BITS).astype(np.int64, copy=False)
