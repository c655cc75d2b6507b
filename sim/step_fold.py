"""Folds a run's steps, chunk by chunk, into the time-weighted figures of a window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .columns import Floats, Ints, StepColumns
from .fragmentation import FragmentationFold
from .overload import QueueFold
from .window import Level, Window


class Counts(NamedTuple):
    """Counts as they stand from `from_ns` on; arrays over steps."""

    from_ns: Ints
    end_ns: Ints
    """End of the step: until then at least, unless the next one is planned before."""
    running: Ints
    waiting: Ints
    used: Ints
    kv_tokens: Ints
    refused: Ints

    @classmethod
    def of(cls, steps: StepColumns, usable_blocks: int, previous_end_ns: int) -> Counts:
        """Those of a chunk; `previous_end_ns` is the end of the step before it."""
        end_ns = steps.start_ns + steps.duration_ns
        before_ns = np.concatenate([[previous_end_ns], end_ns[:-1]])
        planned_ns = np.minimum(steps.start_ns, np.maximum(steps.start_ns - steps.host_ns, before_ns))
        used = usable_blocks - steps.free_blocks
        lasting = (steps.num_running, steps.num_waiting, used, steps.kv_tokens, steps.refused_blocks)
        return cls(planned_ns, end_ns, *lasting)

    def rows(self, rows: slice) -> Counts:
        """Some of the steps."""
        return Counts(*(column[rows] for column in self))

    def then(self, later: Counts) -> Counts:
        """These and the later ones."""
        return Counts(*map(np.concatenate, zip(self, later, strict=True)))


class StepFold:
    """The figures of one window; steps are added in order, in chunks of any size, then `close`.

        running, waiting, free  |--- as after planning step i ---|-- idle --|--- step i+1 ---
                                planning of i              end i |          planning of i+1
                                                   (or start of i+1, if that is earlier: steps in flight overlap)

    A step is planned in the `host_ns` before its start. The driver plans one as soon as there is something to
    compute. So while idle nothing runs; what still waits, waits for something else (its KV to arrive) and keeps
    its blocks; if nothing waits, the KV cache is unused. Busy is the device: the time between planning and start
    is not. The queue's length goes to `queue` as well, which has a window of its own, what memory holds to
    `fragmentation`.
    """

    def __init__(self, window: Window, usable_blocks: int, queue: QueueFold, fragmentation: FragmentationFold) -> None:
        self.window = window
        self.queue = queue
        self.fragmentation = fragmentation
        self.usable_blocks = usable_blocks
        self.num_steps = 0
        self.num_extrapolated_steps = 0
        self.running, self.waiting, self.used_blocks = Level(), Level(), Level()
        self.busy_ns = 0
        self.compute_ns = 0.0
        self.memory_ns = 0.0
        self._busy_until_ns = 0
        self._last: Counts | None = None  # of the last step: how long they held is not known yet

    def add(self, steps: StepColumns) -> None:
        """The next steps."""
        if len(steps.start_ns) == 0:
            return
        self.num_steps += len(steps.start_ns)
        self.num_extrapolated_steps += int(steps.extrapolated.sum())
        self._add_work(steps)
        previous_end_ns = 0 if self._last is None else int(self._last.end_ns[-1])
        counts = Counts.of(steps, self.usable_blocks, previous_end_ns)
        if self._last is not None:
            counts = self._last.then(counts)
        self._last = counts.rows(slice(-1, None))
        self._add_counts(counts.rows(slice(-1)), counts.from_ns[1:])

    def close(self) -> None:
        """No more steps: idle until the windows end."""
        if self._last is not None:
            last_ns = max(self.window.end_ns, self.queue.window.end_ns)
            self._add_counts(self._last, np.maximum(self._last.end_ns, last_ns))
            self._last = None

    def _add_work(self, steps: StepColumns) -> None:
        """Busy time (overlapping steps counted once); FLOPs and bytes as far as their steps fall inside."""
        end_ns = steps.start_ns + steps.duration_ns
        inside_ns = self.window.overlap(steps.start_ns, end_ns)
        share: Floats = inside_ns / np.maximum(steps.duration_ns, 1)
        self.compute_ns += float(np.dot(steps.compute_ns, share))
        self.memory_ns += float(np.dot(steps.memory_ns, share))
        until_ns = np.maximum.accumulate(np.concatenate([[self._busy_until_ns], end_ns]))
        self.busy_ns += int(self.window.overlap(np.maximum(steps.start_ns, until_ns[:-1]), end_ns).sum())
        self._busy_until_ns = int(until_ns[-1])

    def _add_counts(self, counts: Counts, next_ns: Ints) -> None:
        """Counts that hold until the next step is planned, and idle time where that is after the step's end."""
        self._add_spans(counts._replace(end_ns=np.minimum(counts.end_ns, next_ns)))
        idle = counts.end_ns < next_ns
        waiting = counts.waiting[idle]
        used, kv_tokens = (column[idle] * (waiting > 0) for column in (counts.used, counts.kv_tokens))
        none = np.zeros_like(waiting)
        self._add_spans(Counts(counts.end_ns[idle], next_ns[idle], none, waiting, used, kv_tokens, none))

    def _add_spans(self, spans: Counts) -> None:
        dt_ns = self.window.overlap(spans.from_ns, spans.end_ns)
        self.running.add(spans.running, dt_ns)
        self.waiting.add(spans.waiting, dt_ns)
        self.used_blocks.add(spans.used, dt_ns)
        self.queue.add(spans.waiting, spans.from_ns, spans.end_ns)
        self.fragmentation.add(spans.from_ns, dt_ns, spans.used, spans.kv_tokens, spans.refused)
