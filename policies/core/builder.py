"""What a batching policy composes a step with: extend, admit, preempt, and the whole decode batch at once."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import TYPE_CHECKING

from .decode_batch import in_order
from .kv_memory import AnyMatch
from .plan import Admission, Preemption, Row, StepPlan
from .records import Blocked, Status
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
        self.aborted: list[Sequence] = []
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
        if self.aborted:
            self.aborted = []
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
        return in_order(self.core.running)

    def loose(self) -> list[Sequence]:
        """Running sequences outside the decode batch, in order of admission."""
        return in_order(self.core.loose)

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

    def decode_all(self, extensions: Items[tuple[Sequence, int]] = (), *, preempts: bool = False) -> bool:
        """One token for each member of the decode batch and n for each of `extensions` (in order of admission).

        The outcome is that of extending all of them one by one in order of admission. Where blocks do not suffice for
        all, those admitted last give way with `preempts`; without, and where tokens do not suffice, nothing is
        changed and the answer is False.
        """
        batch, cache = self.core.batch, self.core.kv_cache
        tokens, blocks = batch.size, cache.num_needed(batch)
        for sequence, n in extensions:
            tokens += n
            blocks += max(0, cache.num_blocks_short(sequence, sequence.computed + n))
        if tokens > self.budget:
            return False
        is_short = blocks > cache.pool.num_free
        if is_short and not preempts:
            return False
        if extensions or is_short:
            self._decode_in_order(extensions)
        else:
            cache.advance(batch, is_ahead=bool(self.core.in_flight))
        if batch.size:
            self._note_batch()
        return True

    def _decode_in_order(self, extensions: Items[tuple[Sequence, int]]) -> None:
        """`decode_all` one by one: only those are touched that need or fill a block. The last give way when short."""
        core, batch = self.core, self.core.batch
        filling = [] if core.in_flight else batch.filling()
        work: list[tuple[int, Sequence, int | None]] = [(s.admission, s, n) for s, n in extensions]
        work += [(s.admission, s, 1) for s in core.kv_cache.crossing(batch)]
        work += [(s.admission, s, None) for s in filling]
        if len(work) > 1:
            work.sort(key=lambda item: item[0])
        for _, sequence, n in work:
            if sequence.state is not State.RUNNING:
                continue
            if n is None:
                core.kv_cache.fill(sequence, batch.planned - sequence.base + 1)
            elif not self._serve(sequence, n):
                return

    def _serve(self, sequence: Sequence, num_tokens: int) -> bool:
        """Tokens for a sequence of the batch that needs a block, or of `extensions`; False if it gave way itself."""
        core, cache = self.core, self.core.kv_cache
        short = 1 if sequence.in_batch else cache.num_blocks_short(sequence, sequence.computed + num_tokens)
        while short > cache.pool.num_free:
            victim = core.running[next(reversed(core.running))]
            self.preempt(victim, sequence)
            if victim is sequence:
                return False
        if sequence.in_batch:
            cache.cross(sequence, core.batch)
        else:
            extended = self.extend(sequence, num_tokens)
            assert extended, sequence
        return True

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
            self.core.running_list.leave_batch(sequence)

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

    def preempt(self, victim: Sequence, by: Sequence | None) -> None:
        """Take a running sequence's blocks for `by` (None: all that run on); it waits again.

        What it has computed is lost, or copied to the host where the preemption policy swaps and there is room. Tokens
        that this step had for it go back to the budget.
        """
        core = self.core
        row = self.rows.pop(victim, None)
        if row is not None:
            self.budget += row.num_tokens
            if row.is_prefill and self.prefill_budget is not None:
                self.prefill_budget += row.num_tokens - row.num_drafts
        core.running_list.take_out(victim)
        num_blocks = core.kv_cache.num_held(victim)
        core.kv_cache.release(victim)
        reason = "prefill" if by is not None and by.is_prefilling else "decode"
        if core.swaps:
            is_new = any(admission.sequence is victim for admission in self.admitted)
            assert not is_new, f"{victim} gives way in the step that admitted it: its KV is neither here nor there"
            core.host.keep(victim, by, reason)
        victim.computed = victim.drafts = 0
        victim.state = State.PREEMPTED
        victim.record.num_preemptions += 1
        core.note_entry(victim)
        core.policies.preemption.put_back(core.waiting, victim, core.policies.scheduling)
        self.preempted.append(Preemption(victim, by, num_blocks, reason))

    def make_room(self, num_tokens: int) -> None:
        """Evict until so many tokens' blocks are blank, where the prefix index evicts ahead of need."""
        self.core.kv_cache.make_room(num_tokens, None, "decode")

    def abort(self, sequence: Sequence) -> None:
        """End a running sequence that memory can never hold."""
        self.core.end(sequence, Status.ABORTED)
        self.aborted.append(sequence)

    # Waiting sequences

    def order_waiting(self) -> None:
        """Let the scheduling policy order the queue."""
        core = self.core
        if core.waiting:
            core.policies.scheduling.reorder(core.waiting, core)

    def match(self, sequence: Sequence) -> AnyMatch:
        """What the prefix index holds of a waiting sequence. On a radix tree this refreshes what it finds."""
        found: AnyMatch = self.core.kv_cache.match(sequence)
        return found

    def num_ready(self, sequence: Sequence, match: AnyMatch) -> int:
        """Tokens of a waiting sequence that need not be computed: its cached prefix, or what lies on the host."""
        return max(match.num_blocks * self.core.kv_cache.block_size, sequence.num_swapped)

    def admit(self, sequence: Sequence, match: AnyMatch, num_tokens: int, num_drafts: int = 0) -> Blocked | None:
        """Let the first waiting sequence run, with `num_tokens` tokens in this step behind those that are ready.

        What lies on the host behind the cached prefix is copied back, into blocks that are taken for it.
        A reason, and nothing changed, where memory does not suffice: for all its known tokens with
        `reserve_full_prompt`, else for those of this step, or for its range where memory is contiguous; `watermark`
        blocks stay free while anyone runs.
        """
        core, cache = self.core, self.core.kv_cache
        total = self.num_ready(sequence, match) + num_tokens
        room = max(total, sequence.num_tokens) if self.config.reserve_full_prompt else total
        needed, spare = cache.num_to_admit(sequence, match, room), core.watermark_blocks if core.running else 0
        if not cache.has_room(needed, spare):
            self.plan.refused_blocks = needed + spare
            return Blocked.MEMORY
        cache.acquire(sequence, match)
        self._start(sequence, match, num_tokens, num_drafts)
        cache.extend(sequence, total, sequence.num_tokens, "admit")
        return None

    def enrol(self, sequence: Sequence, match: AnyMatch, num_tokens: int) -> None:
        """`admit` without a look at memory, for a batching policy that has locked `match` and counts for itself.

        Blocks are taken by `take_memory`, when the step is complete.
        """
        self._start(sequence, match, num_tokens, 0)

    def proceed(self, sequence: Sequence, num_tokens: int) -> None:
        """`enrol` for a running sequence: the next chunk of its prompt."""
        self._add(Row(sequence, num_tokens, 0, True))

    def take_memory(self) -> None:
        """Blocks for all rows of the step."""
        for row in self.rows.values():
            sequence = row.sequence
            self.core.kv_cache.extend(sequence, row.num_computed + row.num_tokens, sequence.num_tokens, "admit")

    def _start(self, sequence: Sequence, match: AnyMatch, num_tokens: int, num_drafts: int) -> None:
        core = self.core
        first = core.waiting.pop_first()
        assert first is sequence, (first, sequence)
        hit = match.num_blocks * core.kv_cache.block_size
        self.admitted.append(Admission(sequence, hit, sequence.state is State.PREEMPTED))
        sequence.computed = self.num_ready(sequence, match)
        is_prefill = not sequence.resumes_decoding
        if sequence.num_swapped:
            core.host.bring_back(sequence, match.num_blocks)
        core.running_list.put_in(sequence)
        self._add(Row(sequence, num_tokens, num_drafts, is_prefill))

    def block(self, reason: Blocked) -> None:
        """Say why the first waiting sequence is not admitted."""
        self.plan.blocked = reason
