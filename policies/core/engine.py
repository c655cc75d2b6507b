"""The engine core: decides and remembers; never waits, never reads a clock, never touches a tensor.

    core.add_request(request, now_ns)
    plan = core.plan_step(now_ns)             the schedule is applied here
    result = executor.execute(plan)           somewhere else
    events = core.commit_step(plan, result, now_ns)

Up to `config.depth` plans may be in flight; they are committed in the order in which they were planned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from collections.abc import Sequence as Items

from .builder import StepBuilder
from .config import EngineConfig, Policies
from .decode_batch import DecodeBatch
from .kv_cache import Eviction, KVCache
from .plan import Gap, Row, StepEvents, StepPlan, StepResult
from .records import RequestRecord, Status
from .request import Request
from .sequence import Sequence, State
from .wait_clock import WaitClock
from .waiting_queue import WaitingQueue


class EngineCore:
    """One engine: its waiting and running sequences, its KV cache, its policies."""

    def __init__(self, config: EngineConfig, policies: Policies) -> None:
        self.config = config
        self.policies = policies
        self.kv_cache = KVCache(
            config.num_blocks, config.block_size, policies.eviction, caching=config.enable_prefix_caching
        )
        self.watermark_blocks = int(config.watermark * config.num_blocks)
        self.now_ns = 0
        self.max_num_batched_tokens = config.max_num_batched_tokens
        self.max_num_seqs = config.max_num_seqs
        self.sequences: dict[str, Sequence] = {}
        """Every sequence that has not ended, by request id."""
        self.waiting = WaitingQueue()
        self.running: dict[int, Sequence] = {}
        """By admission number, in its order."""
        self.loose: dict[int, Sequence] = {}
        """Of these, the ones outside the decode batch."""
        self.batch = DecodeBatch(config.block_size)
        self.in_flight: deque[StepPlan] = deque()
        self.num_steps = 0
        self._num_seen = 0
        self._num_admissions = 0
        self._left: list[Sequence] = []
        self._builder = StepBuilder(self)
        self._waits = WaitClock()

    # What policies see (protocols.EngineView)

    @property
    def num_running(self) -> int:
        """Running sequences."""
        return len(self.running)

    @property
    def num_waiting(self) -> int:
        """Waiting and preempted sequences."""
        return len(self.waiting)

    @property
    def num_free_blocks(self) -> int:
        """Blocks that can be handed out."""
        return self.kv_cache.pool.num_free

    def last_decode_admission(self) -> int:
        """The latest admission number in the decode batch; 0 if it is empty."""
        return next((key for key in reversed(self.running) if self.running[key].in_batch), 0)

    # Requests come and go

    def refusal(self, request: Request) -> str | None:
        """Why this engine can never serve the request, or None."""
        prompt, config = request.prompt.num_tokens, self.config
        if prompt < 1:
            return "the prompt is empty"
        if request.max_tokens < 1:
            return "max_tokens is 0"
        total = prompt + request.max_tokens
        if total > config.max_model_len:
            return f"prompt and max_tokens ({total}) exceed max_model_len ({config.max_model_len})"
        blocks = -(-(total - 1) // config.block_size)  # the last token is never computed
        if blocks > config.num_blocks - 1:
            return f"prompt and max_tokens ({total}) need {blocks} KV blocks of {config.num_blocks - 1}"
        if not config.enable_chunked_prefill and total - 1 > config.max_num_batched_tokens:
            return f"without chunked prefill {total} tokens exceed max_num_batched_tokens"
        return None

    def add_request(self, request: Request, now_ns: int) -> RequestRecord:
        """Queue a request. Its record fills as it goes; one that can never be served comes back as refused."""
        assert request.id not in self.sequences, f"two requests are called {request.id}"
        record = RequestRecord(
            request.id,
            request.tenant,
            request.session,
            request.priority,
            request.prompt.num_tokens,
            intended_ns=request.arrival_ns,
            sent_ns=request.arrival_ns,
        )
        if self.refusal(request) is not None:
            record.status = Status.REFUSED
            return record
        sequence = Sequence(request, self._num_seen, record)
        self._num_seen += 1
        self.sequences[request.id] = sequence
        self._waits.arrived(sequence, now_ns)
        self.policies.scheduling.insert(self.waiting, sequence)
        return record

    def abort(self, request_id: str, now_ns: int) -> RequestRecord | None:
        """End a request wherever it stands and free what it holds; None if it has ended already."""
        sequence = self.sequences.get(request_id)
        if sequence is None:
            return None
        self._end(sequence, Status.ABORTED)
        return sequence.record

    # One step

    def plan_step(self, now_ns: int) -> StepPlan | None:
        """Compose the next step and apply it; None if nothing runs or waits.

        The plan may be empty: everything that runs is certain to end with a step in flight.
        """
        assert len(self.in_flight) < self.config.depth, f"{len(self.in_flight)} plans in flight"
        if not self.running and not self.waiting:
            return None
        self.now_ns = now_ns
        plan = StepPlan(self.num_steps, now_ns)
        self.num_steps += 1
        builder, cache = self._builder, self.kv_cache
        builder.begin(plan)
        had_waiting = bool(self.waiting)
        if had_waiting:
            self._waits.charge(now_ns)
            self.policies.scheduling.reorder(self.waiting, self)
        self.policies.batching.compose(builder)
        self.in_flight.append(plan)
        if builder.rows:
            self._apply_rows(plan, builder.rows)
        if plan.batch_number is not None:
            for sequence in self.batch.ending():
                self.leave_batch(sequence)
        if self._left:
            plan.left, self._left = self._left, []
        if cache.evictions:
            plan.evictions, cache.evictions = cache.evictions, []
        if builder.admitted:
            plan.admitted = builder.admitted
            self._note_admissions(plan)
        if builder.preempted:
            plan.preempted = builder.preempted
        if had_waiting or self.waiting:
            self._waits.settle(self.waiting, plan.blocked)
        self._take_stock(plan)
        return plan

    def _take_stock(self, plan: StepPlan) -> None:
        plan.num_running = len(self.running)
        plan.num_waiting = len(self.waiting)
        plan.num_free_blocks = self.kv_cache.pool.num_free
        plan.num_cached_blocks = self.kv_cache.index.num_evictable

    def commit_step(self, plan: StepPlan, result: StepResult, now_ns: int) -> StepEvents:
        """Deliver a step's tokens: roll back rejected drafts, end what is done, free its blocks. In order of plans."""
        oldest = self.in_flight.popleft()
        assert oldest is plan, "plans are committed in the order in which they were made"
        self.now_ns = now_ns
        events = StepEvents()
        if result.tokens is not None:
            self._learn(result.tokens)
        if plan.batch_number is not None:
            events.gaps = self.batch.commit(now_ns, plan.num_decodes - len(plan.detached))
        if plan.rows or plan.detached or result.stopped:
            events.finished = self._finish(plan, result, events)
        return events

    # A stretch of steps in which nothing is decided

    def steady_steps(self) -> int:
        """How many of the next steps are certain to be one more token for each member of the decode batch.

        Certain as long as nobody arrives, stops or is aborted: nobody waits, all that run are in the batch, none ends
        by length, blocks suffice. The stretch is carried out by `plan_steady` and `commit_steady` in turn, and gives
        what plans and commits one by one would.
        """
        batch = self.batch
        if self.loose or self.waiting or not batch.size or batch.size > self.config.max_num_batched_tokens:
            return 0
        if not getattr(self.policies.batching, "decodes_alone", False) or len(self.in_flight) != self.config.depth - 1:
            return 0
        if any(plan.rows or plan.detached or plan.batch_number is None for plan in self.in_flight):
            return 0
        steps = batch.steps_to_end() - 1
        if -(-steps // self.config.block_size) * batch.size <= self.num_free_blocks:
            return steps
        return min(steps, self.num_free_blocks // batch.size * self.config.block_size)

    def plan_steady(self, now_ns: int) -> Items[Eviction]:
        """Plan one step of a stretch; returns what was evicted for it."""
        self.now_ns = now_ns
        self.num_steps += 1
        self._builder.hand_out_blocks()
        self.batch.plan()
        cache = self.kv_cache
        if not cache.evictions:
            return ()
        evictions, cache.evictions = cache.evictions, []
        return evictions

    def commit_steady(self, now_ns: int) -> Items[Gap]:
        """Commit the oldest step of a stretch; returns the gaps since the members' last tokens."""
        self.now_ns = now_ns
        return self.batch.commit(now_ns, self.batch.size)

    def end_stretch(self, now_ns: int, evictions: Items[Eviction]) -> StepPlan:
        """The plan of the stretch's last step, planned at `now_ns`, which is still in flight."""
        batch = self.batch
        plan = StepPlan(self.num_steps - 1, now_ns, batch_number=batch.planned, num_decodes=batch.size)
        plan.decode_context_tokens = batch.context_tokens
        plan.max_decode_context = batch.max_context()
        plan.evictions = evictions
        self._take_stock(plan)
        self.in_flight[-1] = plan
        return plan

    # Changes of state that the builder shares

    def put_in(self, sequence: Sequence) -> None:
        """Append a sequence to the running list."""
        self._num_admissions += 1
        sequence.admission = self._num_admissions
        sequence.state = State.RUNNING
        self.running[sequence.admission] = self.loose[sequence.admission] = sequence

    def take_out(self, sequence: Sequence) -> None:
        """Remove a sequence from the running list."""
        if sequence.in_batch:
            self.leave_batch(sequence)
        del self.running[sequence.admission], self.loose[sequence.admission]

    def leave_batch(self, sequence: Sequence) -> None:
        """Take a member out of the decode batch; its tokens in flight are delivered to it alone."""
        pending = self.batch.leave(sequence)
        self.loose[sequence.admission] = sequence
        self._left.append(sequence)
        for plan in reversed(self.in_flight):
            if not pending:
                break
            if plan.batch_number is not None:
                plan.detached = [*plan.detached, sequence]
                pending -= 1

    # Inside a step

    def _apply_rows(self, plan: StepPlan, rows: dict[Sequence, Row]) -> None:
        """Advance the sequences scheduled one by one; those with a steady decode ahead join the batch."""
        ordered = list(rows.values())
        if len(ordered) > 1:
            ordered.sort(key=lambda row: row.sequence.admission)
        plan.rows, joined = ordered, []
        speculates = self.config.num_speculative_tokens > 0
        for row in ordered:
            sequence = row.sequence
            sequence.computed += row.num_tokens
            known = sequence.num_tokens + sequence.in_flight
            sequence.is_prefilling = sequence.computed < known
            row.samples = sequence.computed - row.num_drafts >= known
            plan.num_drafts += row.num_drafts
            if row.is_prefill:
                plan.num_prefill_tokens += row.num_tokens - row.num_drafts
                sequence.record.num_chunks += 1
            if row.samples:
                sequence.in_flight += 1
                if not speculates and known + 1 < sequence.end:
                    del self.loose[sequence.admission]
                    self.batch.join(sequence)
                    joined.append(sequence)
        if joined:
            plan.joined = joined

    def _note_admissions(self, plan: StepPlan) -> None:
        for sequence, num_cached_tokens, resumed in plan.admitted:
            if not resumed:
                record = sequence.record
                record.admitted_ns = record.first_scheduled_ns = plan.now_ns
                record.cached_tokens = num_cached_tokens
                self._waits.admitted(sequence, plan.now_ns)

    def _learn(self, tokens: Mapping[str, list[int]]) -> None:
        """Append literal output tokens."""
        for request_id, new in tokens.items():
            if request_id in self.sequences:
                self.sequences[request_id].stream.push(new)

    def _finish(self, plan: StepPlan, result: StepResult, events: StepEvents) -> list[Sequence]:
        """Deliver what a plan scheduled one by one; end what is done, in order of admission."""
        ended = self._deliver(plan, result, events) if plan.rows or plan.detached else []
        for request_id in result.stopped:
            sequence = self.sequences.get(request_id)
            if sequence is not None and sequence not in ended:
                ended.append(sequence)
        if len(ended) > 1:
            ended.sort(key=lambda sequence: sequence.admission)
        for sequence in ended:
            self._end(sequence, Status.FINISHED)
        return ended

    def _deliver(self, plan: StepPlan, result: StepResult, events: StepEvents) -> list[Sequence]:
        """Tokens of the sequences that the plan scheduled one by one; returns those that end with theirs by length."""
        work: list[tuple[Sequence, Row | None]] = [(row.sequence, row) for row in plan.rows if row.samples]
        if plan.detached:
            work += [(sequence, None) for sequence in plan.detached]
            work.sort(key=lambda item: item[0].admission)
        ended, gaps = [], list(events.gaps)
        for sequence, row in work:
            if sequence.state is State.ENDED:
                continue
            accepted = self._verify(sequence, row, result) if row and row.num_drafts else 0
            events.num_accepted += accepted
            sequence.in_flight -= 1
            self._stamp(sequence, gaps)
            if sequence.in_batch:
                continue
            sequence.num_tokens += 1 + accepted
            self._enter_delivered(sequence, row)
            if sequence.num_tokens >= sequence.end:
                ended.append(sequence)
            elif sequence.state is State.RUNNING:
                sequence.drafts = self.config.num_speculative_tokens
        events.gaps = gaps
        return ended

    def _verify(self, sequence: Sequence, row: Row, result: StepResult) -> int:
        """Roll back the drafts that were not accepted; returns how many were."""
        left = sequence.end - sequence.num_tokens - 1
        accepted = min((result.accepted or {}).get(sequence.id, 0), row.num_drafts, left)
        sequence.num_verified += 1
        sequence.computed -= row.num_drafts - accepted
        return accepted

    def _enter_delivered(self, sequence: Sequence, row: Row | None) -> None:
        """Enter blocks that delivered tokens made known: after verification, and behind asynchronous plans."""
        if sequence.state is State.RUNNING and (self.config.depth > 1 or (row and row.num_drafts)):
            self.kv_cache.enter(sequence, sequence.computed - sequence.in_flight)

    def _stamp(self, sequence: Sequence, gaps: list[Gap]) -> None:
        """Note the time of a sequence's new output chunk."""
        record, now_ns = sequence.record, self.now_ns
        if record.first_token_ns is None:
            record.first_token_ns = now_ns
        else:
            gap = now_ns - sequence.last_token_ns
            gaps.append((gap, 1, sequence))
            if record.max_gap_ns is None or gap > record.max_gap_ns:
                record.max_gap_ns = gap
        sequence.last_token_ns = now_ns

    def _end(self, sequence: Sequence, status: Status) -> None:
        """Take a sequence out of the engine and free its blocks."""
        if sequence.state is State.RUNNING:
            self.take_out(sequence)
            self.kv_cache.release(sequence)
        else:
            self.waiting.remove(sequence)
        sequence.state = State.ENDED
        del self.sequences[sequence.id]
        record = sequence.record
        record.status = status
        record.output_tokens = sequence.num_tokens - sequence.prompt_tokens
        if record.output_tokens:
            record.last_token_ns = sequence.last_token_ns

    def check_integrity(self) -> None:
        """Assert that blocks are conserved and every sequence stands in exactly one place."""
        held = [*self.running.values(), *self.waiting]
        assert {s.id for s in held} == set(self.sequences), "a sequence is lost"
        assert len(self.loose) + self.batch.size == len(self.running), (len(self.loose), self.batch.size)
        self.kv_cache.check_integrity(held)
