"""What a step looks like to a cost model, and the protocol by which anyone may ask what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol


class StepShape(NamedTuple):
    """The size of a step: all that a cost model may see, and what a profiler logs."""

    prefill_chunks: Sequence[tuple[int, int]] = ()
    """`(q, kv)` a chunk: new tokens computed, tokens of context already in the cache before them."""
    num_decodes: int = 0
    decode_context_tokens: int = 0
    """Summed context of the decodes, the token being computed included."""
    max_decode_context: int = 0
    num_samples: int = 0
    """Rows that pass lm_head and sampler: every scheduled request, whether it samples or not."""
    num_drafts: int = 0
    """Draft tokens verified on top of the decodes' own tokens."""
    num_unfinished: int = 0
    """Of the rows, those of chunks that end before their prompt does: they get no token, and some engines leave them
    out."""
    shared_tokens: int = 0
    """Context that several sequences have in the same KV blocks: of each such token all its readers but one, summed
    over all that run."""


class Share(NamedTuple):
    """How much of a step's device time rests on what, in nanoseconds (of a stretch of steps: arrays of them).

    The rest was interpolated between measured points.
    """

    measured_ns: Any
    """Kernels at shapes that were measured."""
    extrapolated_ns: Any
    """Kernels at shapes beyond those."""
    data_sheet_ns: Any
    """Kernels of which nothing was measured."""


class StepCost(NamedTuple):
    """What a step costs, in integer nanoseconds."""

    device_ns: int
    host_ns: int
    """Host work for the step; overlapped with the device under asynchronous scheduling, else on top of it."""
    compute_ns: int
    """FLOPs of the step at the device's full peak: the floor that no step beats."""
    memory_ns: int
    """Bytes of the step at the device's full bandwidth: the other floor."""
    extrapolated: bool = False
    """True where a measured curve was left behind."""
    share: Share | None = None
    """What the device time rests on; None: nothing was measured at all."""


class StepTimeEstimator(Protocol):
    """Predicts what a step costs. A pure function of the shape; injected into policies that ask for it."""

    def step_cost(self, shape: StepShape) -> StepCost:
        """Cost of one step of this shape. An empty shape costs no device time."""
        ...
