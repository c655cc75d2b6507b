"""The engine core: decides and remembers; never waits, never reads a clock, never touches a tensor.

    core.add_request(request, now_ns)
    plan = core.plan_step(now_ns)             the schedule is applied here
    result = executor.execute(plan)           somewhere else
    events = core.commit_step(plan, result, now_ns)

Up to `config.depth` plans may be in flight; they are committed in the order in which they were planned.
"""

from __future__ import annotations

from collections import deque

from .applying import apply_rows, note_admissions, note_end, take_stock
from .builder import StepBuilder
from .config import EngineConfig, Policies
from .decode_batch import DecodeBatch
from .delivery import Delivery
from .host_memory import HostMemory
from .kv_memory import kv_memory_of
from .outlook import Outlook
from .plan import StepEvents, StepPlan, StepResult
from .radix_cache import RadixCache
from .radix_node import RadixNode
from .records import RequestRecord, Status, record_of
from .refusal import refusal
from .request import Request
from .running_list import RunningList
from .sequence import Sequence, State
from .steady import SteadyDecode
from .wait_clock import WaitClock
from .waiting_queue import WaitingQueue


class EngineCore:
    """One engine: its waiting and running sequences, its KV cache, its policies."""

    def __init__(self, config: EngineConfig, policies: Policies, *, tells_grants: bool = False) -> None:
        """With `tells_grants` every plan says how block tables change (`StepPlan.grants`); decisions are the same."""
        self.config = config
        self.policies = policies
        self.kv_cache = kv_memory_of(config, policies.eviction, tells_grants=tells_grants)
        self.host = HostMemory(config.num_host_blocks, config.block_size)
        self.swaps = getattr(policies.preemption, "mode", "recompute") == "swap"
        """Whether preempted sequences keep their KV on the host."""
        self.watermark_blocks = int(config.watermark * config.num_blocks)
        self.now_ns = 0
        self.max_num_batched_tokens = config.max_num_batched_tokens
        self.max_num_seqs = config.max_num_seqs
        self.sequences: dict[str, Sequence] = {}
        """Every sequence that has not ended, by request id."""
        self.waiting = WaitingQueue()
        self.batch = DecodeBatch(config.block_size)
        self.in_flight: deque[StepPlan] = deque()
        self.running_list = RunningList(self.batch, self.in_flight)
        self.running = self.running_list.members
        """By admission number."""
        self.loose = self.running_list.loose
        """Of these, the ones outside the decode batch."""
        self.num_steps = 0
        self._num_seen = 0
        self._num_entries = 0
        self.num_prefilled = 0
        """Tokens prefilled so far, those of preempted sequences each time."""
        self.num_left = 0
        """Running sequences that have ended so far."""
        self.emptied_ns: int | None = None
        """When a sequence last ended as the only one in the engine."""
        self.builder = StepBuilder(self)
        self.steady = SteadyDecode(self)
        self.outlook = Outlook(self)
        self._delivery = Delivery(self)
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

    def num_known(self, sequence: Sequence) -> int:
        """Prompt and output tokens of a sequence that are delivered."""
        return self.batch.num_known(sequence) if sequence.in_batch else sequence.num_tokens

    def num_outputs(self, sequence: Sequence) -> int:
        """Output tokens of a sequence that are delivered."""
        return self.num_known(sequence) - sequence.prompt_tokens

    def peek_prefix(self, sequence: Sequence) -> int:
        """Tokens of a waiting sequence that the prefix index holds, or the host."""
        return max(self.kv_cache.peek(sequence), sequence.num_swapped)

    def match_prefix(self, sequence: Sequence) -> int:
        """The same; on a radix tree a look-up that counts."""
        return max(self.kv_cache.match_known(sequence), sequence.num_swapped)

    def prefix_node(self, sequence: Sequence) -> RadixNode:
        """Where on the radix tree the sequence's prefix ends; a look-up that counts."""
        return radix_cache_of(self).find(sequence).node

    @property
    def prefix_root(self) -> RadixNode:
        """The radix tree's root."""
        return radix_cache_of(self).tree.root

    def take_over_cache(self, other: EngineCore) -> None:
        """Begin with the KV cache of an idle engine of the same configuration, and the eviction policy that orders it.

        To be called before the first request; `other` must not be used any more. Both tell grants, or neither does.
        """
        assert not self.num_steps, f"{self.num_steps} steps were planned already"
        assert not self.sequences, f"{len(self.sequences)} requests are under way"
        assert not other.sequences, f"{len(other.sequences)} requests are under way in the other"
        assert self.config == other.config, (self.config, other.config)
        assert (self.kv_cache.grants is None) == (other.kv_cache.grants is None), "only one of the two tells grants"
        self.kv_cache = other.kv_cache
        self.policies = self.policies._replace(eviction=other.policies.eviction)

    # Requests come and go

    def refusal(self, request: Request) -> str | None:
        """Why this engine can never serve the request, or None."""
        return refusal(request, self.config)

    def add_request(self, request: Request, now_ns: int) -> RequestRecord:
        """Queue a request. Its record fills as it goes; one that can never be served comes back as refused."""
        assert request.id not in self.sequences, f"two requests are called {request.id}"
        record = record_of(request)
        if self.refusal(request) is not None:
            record.status = Status.REFUSED
            return record
        sequence = Sequence(request, self._num_seen, record)
        self._num_seen += 1
        self.sequences[request.id] = sequence
        self._waits.arrived(sequence, now_ns)
        self.note_entry(sequence)
        self.policies.scheduling.insert(self.waiting, sequence)
        return record

    def abort(self, request_id: str, now_ns: int) -> RequestRecord | None:
        """End a request wherever it stands and free what it holds; None if it has ended already."""
        sequence = self.sequences.get(request_id)
        if sequence is None:
            return None
        self.end(sequence, Status.ABORTED)
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
        builder, cache = self.builder, self.kv_cache
        builder.begin(plan)
        had_waiting = bool(self.waiting)
        if had_waiting:
            self._waits.charge(now_ns)
        self.policies.batching.compose(builder)
        self.in_flight.append(plan)
        if builder.rows:
            apply_rows(self, plan, builder.rows)
        if plan.batch_number is not None:
            for sequence in self.batch.ending():
                self.running_list.leave_batch(sequence)
        if self.running_list.left:
            plan.left, self.running_list.left = self.running_list.left, []
        if cache.evictions:
            plan.evictions, cache.evictions = cache.evictions, []
        if cache.grants is not None:
            plan.grants, plan.hollow = cache.grants.hand_over(), cache.grants.hand_over_hollow()
        if builder.admitted:
            plan.admitted = builder.admitted
            note_admissions(builder.admitted, self._waits, now_ns)
        if builder.preempted:
            plan.preempted = builder.preempted
        if self.host.swaps:
            plan.swaps, self.host.swaps = self.host.swaps, []
        if builder.aborted:
            plan.aborted = builder.aborted
        if had_waiting or self.waiting:
            self._waits.settle(self.waiting, plan.blocked)
        take_stock(self, plan)
        return plan

    def commit_step(self, plan: StepPlan, result: StepResult, now_ns: int) -> StepEvents:
        """Deliver a step's tokens: roll back rejected drafts, end what is done, free its blocks. In order of plans."""
        oldest = self.in_flight.popleft()
        assert oldest is plan, "plans are committed in the order in which they were made"
        self.now_ns = now_ns
        return self._delivery.commit(plan, result)

    # Changes of state that builder and delivery share

    def note_entry(self, sequence: Sequence) -> None:
        """A sequence enters the queue."""
        sequence.entry, sequence.prefill_mark = self._num_entries, self.num_prefilled
        self._num_entries += 1

    def end(self, sequence: Sequence, status: Status) -> None:
        """Take a sequence out of the engine and free its blocks."""
        if sequence.state is State.RUNNING:
            self.running_list.take_out(sequence)
            self.kv_cache.finish(sequence)
            self.num_left += 1
        else:
            self.waiting.remove(sequence)
            if sequence.num_swapped:
                self.host.drop(sequence)
        sequence.state = State.ENDED
        del self.sequences[sequence.id]
        if not self.sequences:
            self.emptied_ns = self.now_ns
        note_end(sequence, status)

    def check_integrity(self) -> None:
        """Assert that blocks are conserved and every sequence stands in exactly one place."""
        held = [*self.running.values(), *self.waiting]
        assert {s.id for s in held} == set(self.sequences), "a sequence is lost"
        self.running_list.check_integrity()
        self.kv_cache.check_integrity(held, self.batch)
        self.host.check_integrity(self.waiting, self.running.values())


def radix_cache_of(core: EngineCore) -> RadixCache:
    """The core's KV memory, which a radix tree indexes."""
    assert isinstance(core.kv_cache, RadixCache), "a policy that needs a radix tree runs without one"
    return core.kv_cache
