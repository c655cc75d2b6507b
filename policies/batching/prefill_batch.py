"""One prefill batch of SGLang under composition: a chunk that goes on, then the queue until something stops it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.builder import StepBuilder
from ..core.engine import radix_cache_of
from ..core.radix_cache import OutOfMemory, RadixMatch
from ..core.records import Blocked
from ..core.sequence import Sequence
from .completions import Completions
from .prefill_budget import PrefillBudget, left_to_generate
from .priority_preemption import PriorityPreemption

if TYPE_CHECKING:
    from .prefill_first import PrefillFirst


class PrefillBatch:
    """Built once a step; `members` are its sequences in order, `chunked` is the one that is cut."""

    def __init__(self, step: StepBuilder, policy: PrefillFirst) -> None:
        cache = radix_cache_of(step.core)
        self.step, self.policy, self.cache = step, policy, cache
        self.chunked = policy.chunked
        self.members: list[Sequence] = []
        self.running = policy.running(step)
        num_mixed = len(self.running) if policy.mixed_chunk else 0
        self.budget = PrefillBudget(cache.block_size, policy.max_prefill_tokens, self._chunk_tokens(), num_mixed)
        self.budget.reserved += sum([self.reservation(sequence) for sequence in self.running])
        self._completions: Completions | None = None

    def _chunk_tokens(self) -> int | None:
        """Prefill tokens of this step: the engine's chunk, or less where the chunk-size policy wants that."""
        step, limit = self.step, self.policy.chunked_prefill_size
        if not step.config.enable_chunked_prefill:
            return None
        limits = [limit or step.config.max_num_batched_tokens]
        limits += [tokens for tokens in (step.prefill_budget, step.request_limit) if tokens is not None]
        return min(limits)

    def reservation(self, sequence: Sequence) -> float:
        """Tokens that a running sequence has reserved for its outputs to come."""
        ratio = 1.0 if sequence.request.ignore_eos else self.policy.ratio.value
        return left_to_generate(sequence, self.step.core.num_known(sequence)) * ratio

    # Who is in

    def build(self, slots: int) -> None:
        """Compose it; the policy's `full` is set where nobody else can come in until someone leaves."""
        step, policy = self.step, self.policy
        self._count_free()
        if self.chunked is not None:
            self._go_on(self.chunked)
        preemption = PriorityPreemption(self) if policy.preempts_by_priority else None
        while (sequence := step.next_waiting()) is not None:
            if self.budget.is_used_up() and not self.budget.is_short_of_memory():
                step.block(Blocked.CHUNK if self.budget.input_left > 0 else Blocked.BUDGET)
                break
            freed = preemption.num_victims if preemption else 0
            if len(self.members) >= slots + freed:
                policy.full = Blocked.SLOTS
            if policy.full is not None and not (preemption and preemption.make_way(sequence)):
                step.block(policy.full)
                break
            blocked = self._try(sequence)
            if blocked is not None:
                if blocked is Blocked.MEMORY and (self.running or self.members):
                    policy.full = blocked
                step.block(blocked)
                break
        if preemption:
            preemption.requeue()

    def _count_free(self) -> None:
        self.budget.free_tokens = self.cache.pool.num_free * self.cache.block_size

    def _go_on(self, sequence: Sequence) -> None:
        """The next chunk of a prompt that is computed in part; it counts as the last of the running list."""
        wanted = sequence.num_tokens - sequence.computed
        given = wanted if self.budget.chunk_left is None else self.budget.continuing(wanted)
        self.step.core.running_list.put_last([sequence])
        self.step.proceed(sequence, given)
        self.members.append(sequence)
        self.budget.charge(sequence, given, is_whole=given == wanted)
        if given == wanted:
            self.chunked = None

    def _try(self, sequence: Sequence) -> Blocked | None:
        """Admit a waiting sequence, or say what keeps it out; its prefix is locked while memory is counted."""
        match = self.cache.match(sequence)
        self.cache.acquire(sequence, match)
        self._count_free()
        extend = sequence.num_tokens - match.num_blocks * self.cache.block_size
        given = self._given(sequence, extend)
        if isinstance(given, Blocked):
            self.cache.let_go(sequence)
            return given
        self._admit(sequence, match, given, is_whole=given == extend)
        return Blocked.MEMORY if self.budget.is_short_of_memory() else None

    def _given(self, sequence: Sequence, extend: int) -> int | Blocked:
        if not sequence.request.ignore_eos or self.cache.caching:
            return self.budget.admit(sequence, extend)
        if not self._will_complete(sequence, extend):
            return Blocked.MEMORY
        given = self.budget.cut(extend)
        return Blocked.CHUNK if self.chunked is not None and given != extend else given

    def _admit(self, sequence: Sequence, match: RadixMatch, num_tokens: int, *, is_whole: bool) -> None:
        self.step.enrol(sequence, match, num_tokens)
        self.members.append(sequence)
        self.budget.charge(sequence, num_tokens, is_whole=is_whole)
        if not is_whole:
            self.chunked = sequence

    def _will_complete(self, sequence: Sequence, extend: int) -> bool:
        """Whether memory lasts to everyone's end if it is admitted; once looked at, it stays in the account."""
        budget = self.budget
        tokens = budget.ceil_page(extend) + self.cache.block_size
        if tokens > min(budget.memory_left, budget.memory_left_now):
            return False
        if self._completions is None:
            others = [sequence, *self.running, *self.members]
            self._completions = Completions([self._state(other) for other in others])
        else:
            self._completions.insert(*self._state(sequence))
        return self._completions.fit(budget.memory_left_now - tokens)

    def _state(self, sequence: Sequence) -> tuple[float, int]:
        """Tokens still to generate, and tokens held."""
        ratio = 1.0 if sequence.request.ignore_eos else self.policy.ratio.value
        known = self.step.core.num_known(sequence)
        return (sequence.end - sequence.prompt_tokens) * ratio - (known - sequence.prompt_tokens), known

    # Off it goes

    def launch(self) -> bool:
        """Take its memory; with mixed chunks the decodes run too, if they have room. True if they do."""
        step, cache, core = self.step, self.cache, self.step.core
        self._assure_memory()
        cache.prepare_prefill(sum(row.num_tokens for row in step.rows.values()), len(step.rows))
        step.take_memory()
        if not self.policy.mixed_chunk or not self.running:
            return False
        core.running_list.put_first(self.members)
        if step.decode_all(self.policy.loose_decodes(step)):
            return True
        core.running_list.put_last(self.members)
        step.make_room(cache.pool.num_free * cache.block_size)  # all that can be evicted was, in vain
        return False

    def _assure_memory(self) -> None:
        """Raise OutOfMemory where the rows do not fit: nobody asks whether the chunk that goes on still does."""
        rows, cache = self.step.rows.values(), self.cache
        needed = sum([cache.num_blocks_short(row.sequence, row.num_computed + row.num_tokens) for row in rows])
        if needed > cache.pool.num_free:
            page = cache.block_size
            free = f"{needed * page} tokens of KV memory are needed and {cache.pool.num_free * page} free"
            raise OutOfMemory(f"the prompt of {self.members[0].id} goes on, but {free}; SGLang would end here")
