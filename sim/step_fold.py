"""Folds a run's steps, chunk by chunk, into the time-weighted figures of a window."""

from __future__ import annotations

import numpy as np

from .columns import Floats, Ints, StepColumns
from .overload import QueueFold
from .window import Level, Window


class StepFold:
    """The figures of one window; steps are added in order, in chunks of any size, then `close`.

        running, waiting, free  |--- as after planning step i ---|-- idle --|--- step i+1 ---
                                start i                    end i |          start i+1
                                          (or start i+1, if that is earlier: steps in flight overlap)

    The driver starts a step as soon as there is something to compute. So while idle nothing runs; what still
    waits, waits for something else (its KV to arrive) and keeps its blocks; if nothing waits, the KV cache is
    unused. The queue's length goes to `queue` as well, which has a window of its own.
    """

    def __init__(self, window: Window, usable_blocks: int, queue: QueueFold) -> None:
        self.window = window
        self.queue = queue
        self.usable_blocks = usable_blocks
        self.num_steps = 0
        self.num_extrapolated_steps = 0
        self.running, self.waiting, self.used_blocks = Level(), Level(), Level()
        self.busy_ns = 0
        self.compute_ns = 0.0
        self.memory_ns = 0.0
        self._busy_until_ns = 0
        self._carry: StepColumns | None = None  # the last step: how long its counts held is not known yet

    def add(self, steps: StepColumns) -> None:
        """The next steps."""
        if len(steps.start_ns) == 0:
            return
        self.num_steps += len(steps.start_ns)
        self.num_extrapolated_steps += int(steps.extrapolated.sum())
        self._add_work(steps)
        if self._carry is not None:
            steps = StepColumns(*map(np.concatenate, zip(self._carry, steps, strict=True)))
        self._carry = StepColumns(*(column[-1:] for column in steps))
        self._add_counts(StepColumns(*(column[:-1] for column in steps)), steps.start_ns[1:])

    def close(self) -> None:
        """No more steps: idle until the window ends."""
        if self._carry is not None:
            end_ns = self._carry.start_ns + self._carry.duration_ns
            self._add_counts(self._carry, np.maximum(end_ns, max(self.window.end_ns, self.queue.window.end_ns)))
            self._carry = None

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

    def _add_counts(self, steps: StepColumns, next_start_ns: Ints) -> None:
        end_ns = steps.start_ns + steps.duration_ns
        used = self.usable_blocks - steps.free_blocks
        self._add_spans(steps.start_ns, np.minimum(end_ns, next_start_ns), steps.num_running, steps.num_waiting, used)
        idle = end_ns < next_start_ns
        waiting = steps.num_waiting[idle]
        self._add_spans(end_ns[idle], next_start_ns[idle], np.zeros_like(waiting), waiting, used[idle] * (waiting > 0))

    def _add_spans(self, start_ns: Ints, end_ns: Ints, running: Ints, waiting: Ints, used: Ints) -> None:
        dt_ns = self.window.overlap(start_ns, end_ns)
        self.running.add(running, dt_ns)
        self.waiting.add(waiting, dt_ns)
        self.used_blocks.add(used, dt_ns)
        self.queue.add(waiting, start_ns, end_ns)
