"""What a batching policy composes a step with: extend, admit, preempt, and the whole decode batch at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .hash_blocks import Match
from .plan import Admission, Preemption, Row, StepPlan
from .records import Blocked
from .sequence import Sequence, State

if TYPE_CHECKING:
    from .engine import EngineCore


class StepBuilder:
    """One step under composition. Every call takes effect at once, on blocks and on the running list.

    `budget` and `prefill_budget` are the tokens left; the batching policy sees to them, the builder only counts.
    """

    def __init__(self, core: EngineCore) -> None:
        self.core = core
        self.config = core.config
        self.plan = StepPlan(-1, 0)
        self.rows: dict[Sequence, Row] = {}
        self.admitted: list[Admission] = []
        self.preempted: list[Preemption] = []
        self.budget = 0
        self.prefill_budget: int | None = None
        self.request_limit: int | None = None
        """Tokens that one request may be given in this step."""

    def begin(self, plan: StepPlan) -> None:
        """Start a new step."""
        self.plan = plan
        if self.rows:
            self.rows = {}
        if self.admitted:
            self.admitted = []
        if self.preempted:
            self.preempted = []
        self.budget = self.config.max_num_batched_tokens
        chunk_size, core = self.core.policies.chunk_size, self.core
        self.prefill_budget = chunk_size.step_tokens(core)
        self.request_limit = chunk_size.request_tokens(core)

    # What there is

    @property
    def num_running(self) -> int:
        """Running sequences."""
        return len(self.core.running)

    def running(self) -> list[Sequence]:
        """Running sequences in order of admission."""
        return list(self.core.running.values())

    def loose(self) -> list[Sequence]:
        """Running sequences outside the decode batch, in order of admission."""
        loose = self.core.loose
        return [loose[key] for key in sorted(loose)] if loose else []

    def next_waiting(self) -> Sequence | None:
        """Who is to be admitted next."""
        return self.core.waiting.first()

    def is_scheduled(self, sequence: Sequence) -> bool:
        """Whether this step has tokens for it already."""
        return sequence in self.rows

    def wanted(self, sequence: Sequence) -> int:
        """Tokens that a running sequence outside the batch still has to compute, its drafts included.

        0 if its last token is in flight already: it is certain to end by length.
        """
        if sequence.in_flight and sequence.num_tokens + sequence.in_flight >= sequence.end:
            return 0
        wanted = sequence.num_tokens + sequence.drafts + sequence.in_flight - sequence.computed
        return min(wanted, self.config.max_model_len - sequence.computed - 1)

    # Running sequences

    def decode_all(self, extensions: Iterable[tuple[Sequence, int]] = ()) -> bool:
        """One token for each member of the decode batch and n for each of `extensions` (in order of admission).

        The outcome is that of extending all of them one by one in order of admission. False, and nothing changed,
        where tokens or blocks do not suffice for all.
        """
        core, batch = self.core, self.core.batch
        wants = list(extensions)
        cache = core.kv_cache
        tokens = batch.size + sum(n for _, n in wants)
        if tokens > self.budget:
            return False
        blocks = batch.num_crossing()
        for sequence, n in wants:
            blocks += max(0, cache.num_blocks_short(sequence, sequence.computed + n))
        if blocks > cache.pool.num_free:
            return False
        if wants:
            self._decode_merged(wants)
        elif batch.size:
            self._cross(batch.crossing())
            if not core.in_flight:
                for sequence in batch.filling():
                    cache.enter_filled(sequence, batch.planned - sequence.base + 1)
        if batch.size:
            self._note_batch()
        return True

    def _cross(self, crossing: list[Sequence]) -> None:
        """Give members that need one a new block; what they filled before is entered if it is not yet."""
        if not crossing:
            return
        cache = self.core.kv_cache
        ids = cache.take(len(crossing), None, "decode")
        computed = self.core.batch.planned
        for sequence, block in zip(crossing, ids, strict=True):
            if sequence.private:
                cache.enter_filled(sequence, computed - sequence.base)
            sequence.private.append(block)

    def _decode_merged(self, wants: list[tuple[Sequence, int]]) -> None:
        """`decode_all` with extensions: the index sees everyone in order of admission."""
        core, batch = self.core, self.core.batch
        work: list[tuple[int, Sequence, int | None]] = [(s.admission, s, n) for s, n in wants]
        crossing = set(batch.crossing())
        filling = set() if core.in_flight else set(batch.filling())
        work += [(s.admission, s, None) for s in crossing | filling]
        for _, sequence, n in sorted(work, key=lambda item: item[0]):
            if n is not None:
                extended = self.extend(sequence, n)
                assert extended, sequence
                continue
            if sequence in crossing:
                self._cross([sequence])
            if sequence in filling:
                core.kv_cache.enter_filled(sequence, batch.planned - sequence.base + 1)

    def _note_batch(self) -> None:
        batch, plan = self.core.batch, self.plan
        batch.plan()
        plan.batch_number = batch.planned
        plan.num_decodes = batch.size
        plan.decode_context_tokens = batch.context_tokens
        plan.max_decode_context = batch.max_context()
        self.budget -= batch.size

    def dissolve(self) -> None:
        """Let all members leave the decode batch, so that they can be walked one by one; they join again later."""
        for sequence in self.core.batch.members():
            self.core.leave_batch(sequence)

    def extend(self, sequence: Sequence, num_tokens: int) -> bool:
        """Give a running sequence outside the batch `num_tokens` tokens in this step.

        False, and nothing changed, where blocks are short.
        """
        cache = self.core.kv_cache
        total = sequence.computed + num_tokens
        if cache.num_blocks_short(sequence, total) > cache.pool.num_free:
            return False
        row = Row(
            sequence,
            num_tokens,
            max(0, total - sequence.num_tokens - sequence.in_flight),
            sequence.is_prefilling,
        )
        cache.extend(sequence, total, sequence.num_tokens, "prefill" if row.is_prefill else "decode")
        sequence.drafts = 0
        self._add(row)
        return True

    def _add(self, row: Row) -> None:
        self.rows[row.sequence] = row
        self.budget -= row.num_tokens
        if row.is_prefill and self.prefill_budget is not None:
            self.prefill_budget -= row.num_tokens - row.num_drafts

    def preempt(self, victim: Sequence, by: Sequence) -> None:
        """Take a running sequence's blocks for `by`; it waits again, to be recomputed.

        Tokens that this step had for it go back to the budget.
        """
        core = self.core
        row = self.rows.pop(victim, None)
        if row is not None:
            self.budget += row.num_tokens
            if row.is_prefill and self.prefill_budget is not None:
                self.prefill_budget += row.num_tokens - row.num_drafts
        core.take_out(victim)
        num_blocks = victim.num_entered + len(victim.private)
        core.kv_cache.release(victim)
        victim.computed = victim.drafts = 0
        victim.state = State.PREEMPTED
        victim.record.num_preemptions += 1
        core.policies.preemption.put_back(core.waiting, victim, core.policies.scheduling)
        reason = "prefill" if by.is_prefilling else "decode"
        self.preempted.append(Preemption(victim, by, num_blocks, reason))

    # Waiting sequences

    def match(self, sequence: Sequence) -> Match:
        """What the prefix index holds of a waiting sequence; nothing changes."""
        return self.core.kv_cache.match(sequence)

    def admit(self, sequence: Sequence, match: Match, num_tokens: int, num_drafts: int = 0) -> Blocked | None:
        """Let the first waiting sequence run, with `num_tokens` tokens in this step behind its cached prefix.

        A reason, and nothing changed, where memory does not suffice: for all its known tokens with
        `reserve_full_prompt`, else for those of this step; `watermark` blocks stay free while anyone runs.
        """
        core, cache = self.core, self.core.kv_cache
        hit = match.num_blocks * cache.block_size
        total = hit + num_tokens
        room = max(total, sequence.num_tokens) if self.config.reserve_full_prompt else total
        needed = -(-room // cache.block_size) - match.num_blocks + match.num_idle
        if needed > cache.pool.num_free - (core.watermark_blocks if core.running else 0):
            return Blocked.MEMORY
        first = core.waiting.pop_first()
        assert first is sequence, (first, sequence)
        self.admitted.append(Admission(sequence, hit, sequence.state is State.PREEMPTED))
        cache.acquire(sequence, match)
        sequence.computed = hit
        core.put_in(sequence)
        cache.extend(sequence, total, sequence.num_tokens, "admit")
        self._add(Row(sequence, num_tokens, num_drafts, True))
        return None

    def block(self, reason: Blocked) -> None:
        """Say why the first waiting sequence is not admitted."""
        self.plan.blocked = reason
