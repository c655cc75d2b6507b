"""The step builder as a watched batching policy sees it: each call is looked at before it takes effect."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Items
from typing import TYPE_CHECKING, Any

from .records import Blocked
from .sequence import Sequence, State

if TYPE_CHECKING:
    from .builder import StepBuilder
    from .kv_memory import AnyMatch

CALLS_A_SEQUENCE = 100
"""Calls of the builder in a step, for each sequence in the engine, beyond which a policy is held to loop."""
CALLS_BESIDE = 1000


class GuardedBuilder:
    """Passes on what a StepBuilder can do and has; what would break it raises `broken` instead."""

    def __init__(self, step: StepBuilder, broken: Callable[[str], Exception]) -> None:
        self._step = step
        self._broken = broken
        self._num_calls = 0
        self._most_calls = CALLS_BESIDE + CALLS_A_SEQUENCE * (len(step.core.running) + len(step.core.waiting))

    def __getattr__(self, name: str) -> Any:
        self._count()
        return getattr(self._step, name)

    def _count(self) -> None:
        self._num_calls += 1
        if self._num_calls > self._most_calls:
            num_sequences = len(self._step.core.running) + len(self._step.core.waiting)
            raise self._broken(f"calls the builder for ever: {self._num_calls:,} times for {num_sequences} sequences")

    def _check(self, wrong: bool, says: str) -> None:
        if wrong:
            raise self._broken(says)

    def _check_runs(self, sequence: Sequence, verb: str) -> None:
        runs = isinstance(sequence, Sequence) and sequence.state is State.RUNNING
        self._check(not runs, f"{verb} {_named(sequence)}, which does not run")

    def _check_extension(self, sequence: Sequence, num_tokens: int, budget: int) -> None:
        step = self._step
        self._check_runs(sequence, "extends")
        self._check(sequence.in_batch, f"extends {sequence.id}, which is in the decode batch: call dissolve first")
        self._check(sequence in step.rows, f"extends {sequence.id} twice in one step")
        self._check_tokens(sequence, num_tokens, step.wanted(sequence), budget)
        room = step.prefill_budget
        is_over = room is not None and sequence.is_prefilling and num_tokens > room
        self._check(is_over, f"gives {sequence.id} {num_tokens} tokens; the chunk size has {room} left")

    def _check_tokens(self, sequence: Sequence, num_tokens: int, wanted: int, budget: int) -> None:
        self._check(type(num_tokens) is not int or num_tokens < 1, f"gives {sequence.id} {num_tokens!r} tokens")
        self._check(num_tokens > wanted, f"gives {sequence.id} {num_tokens} tokens, which wants {wanted}")
        self._check(num_tokens > budget, f"gives {sequence.id} {num_tokens} tokens; the step has {max(0, budget)} left")
        limit = self._step.request_limit
        is_over = limit is not None and num_tokens > limit
        self._check(is_over, f"gives {sequence.id} {num_tokens} tokens; one request may have {limit}")

    def decode_all(self, extensions: Items[tuple[Sequence, int]] = (), *, preempts: bool = False) -> bool:
        """As the builder's, once a step, with extensions that are valid each."""
        self._count()
        step = self._step
        self._check(step.plan.batch_number is not None, "decodes the batch twice in one step")
        for sequence, num_tokens in extensions:
            self._check_extension(sequence, num_tokens, step.budget)
        return step.decode_all(extensions, preempts=preempts)

    def extend(self, sequence: Sequence, num_tokens: int) -> bool:
        """As the builder's, for who runs, within what it wants and what the step has."""
        self._count()
        self._check_extension(sequence, num_tokens, self._step.budget)
        return self._step.extend(sequence, num_tokens)

    def preempt(self, victim: Sequence, by: Sequence | None) -> None:
        """As the builder's, of who ran before this step."""
        self._count()
        self._check_runs(victim, "preempts")
        is_new = any(admission.sequence is victim for admission in self._step.admitted)
        self._check(is_new, f"preempts {victim.id}, which it has admitted in this step")
        self._step.preempt(victim, by)

    def admit(self, sequence: Sequence, match: AnyMatch, num_tokens: int, num_drafts: int = 0) -> Blocked | None:
        """As the builder's, of the first that waits, within slots, wants and budget."""
        self._count()
        step = self._step
        self._check(sequence is not step.next_waiting(), f"admits {_named(sequence)}, which is not the next to be")
        most = step.config.max_num_seqs
        self._check(step.num_running >= most, f"admits {sequence.id} where max_num_seqs ({most}) run")
        is_pure = step.config.prefix_index == "hashed_blocks"  # on a radix tree, to match is to refresh
        is_other = is_pure and match != step.match(sequence)
        self._check(is_other, f"admits {sequence.id} with what is not its match")
        wanted = sequence.num_tokens - step.num_ready(sequence, match)
        self._check_tokens(sequence, num_tokens, wanted + num_drafts, step.budget)
        room = step.prefill_budget
        is_over = room is not None and not sequence.resumes_decoding and num_tokens - num_drafts > room
        self._check(is_over, f"gives {sequence.id} {num_tokens} tokens; the chunk size has {room} left")
        return step.admit(sequence, match, num_tokens, num_drafts)

    def enrol(self, sequence: Sequence, match: AnyMatch, num_tokens: int) -> None:
        """As the builder's, of the first that waits, within wants and budget."""
        self._count()
        step = self._step
        self._check(sequence is not step.next_waiting(), f"enrols {_named(sequence)}, which is not the next to be")
        wanted = sequence.num_tokens - match.num_blocks * step.config.block_size
        self._check_tokens(sequence, num_tokens, wanted, step.budget)
        step.enrol(sequence, match, num_tokens)

    def proceed(self, sequence: Sequence, num_tokens: int) -> None:
        """As the builder's, for who runs, once a step, within wants and budget."""
        self._count()
        step = self._step
        self._check_runs(sequence, "proceeds with")
        self._check(sequence in step.rows, f"proceeds with {sequence.id} twice in one step")
        self._check_tokens(sequence, num_tokens, sequence.num_tokens - sequence.computed, step.budget)
        step.proceed(sequence, num_tokens)

    def block(self, reason: Blocked) -> None:
        """As the builder's, with a reason that there is."""
        self._count()
        self._check(not isinstance(reason, Blocked), f"blocks the queue for {reason!r}, which is no reason")
        self._step.block(reason)


def _named(sequence: object) -> str:
    return sequence.id if isinstance(sequence, Sequence) else repr(sequence)[:60]
