"""SGLang's round: a prefill batch where one can be built, else one token for everyone that runs."""

from __future__ import annotations

from ..core.builder import StepBuilder
from ..core.engine import radix_cache_of
from ..core.records import Blocked
from ..core.sequence import Sequence
from ..registry import register
from .new_token_ratio import NewTokenRatio
from .prefill_batch import PrefillBatch
from .retraction import make_room_for_decodes

REFRESHED = 128
"""Waiting requests whose cached prefixes an order that looks none up keeps fresh."""
REFRESH_EVERY = 32
"""Sorts of the queue from one such refresh to the next."""


@register("batching", "prefill_first")
class PrefillFirst:
    """Prefills run alone, before decodes; memory is reserved for outputs; when it is short some are retracted.

    `mixed_chunk` lets decodes run with prefills; `prefill_decode_interval` forces decode steps after each prefill.
    `stepwise` is the loop of decision logs: it has no idle state, so rounds without work are steps like any other.
    """

    prefix_index = "radix_tree"
    decodes_alone = True
    recomputes_only = True

    def __init__(
        self,
        chunked_prefill_size: int | None = None,
        max_prefill_tokens: int = 16384,
        conservativeness: float = 1.0,
        mixed_chunk: bool = False,
        prefill_decode_interval: int = 0,
        preempts_by_priority: bool = False,
        stepwise: bool = False,
    ) -> None:
        for name, value, least in (
            ("chunked_prefill_size", 1 if chunked_prefill_size is None else chunked_prefill_size, 1),
            ("max_prefill_tokens", max_prefill_tokens, 1),
            ("conservativeness", conservativeness, 0),
            ("prefill_decode_interval", prefill_decode_interval, 0),
        ):
            if value < least:
                raise ValueError(f"{name}: {value} is out of range; at least {least}")
        self.chunked_prefill_size = chunked_prefill_size
        """None: as many tokens as a step may hold."""
        self.max_prefill_tokens = max_prefill_tokens
        self.mixed_chunk = mixed_chunk
        self.preempts_by_priority = preempts_by_priority
        self.ratio = NewTokenRatio(conservativeness)
        self.chunked: Sequence | None = None
        """The one whose prompt is computed in part."""
        self.full: Blocked | None = None
        """Why nobody is admitted until someone leaves; None: there may be room."""
        self._interval = prefill_decode_interval
        self._decodes_due = 0
        self._stepwise = stepwise
        self._num_left = 0
        self._last_emptied_ns: int | None = None
        self._last: list[Sequence] = []  # the prefill batch of the step before
        self._was_mixed = False
        self._num_sorts = 0

    def compose(self, step: StepBuilder) -> None:
        """What the last step left, then a prefill batch, else decodes."""
        self._take_in(step)
        if not self._prefill(step):
            self._decode(step)
        if step.next_waiting() is not None and step.plan.blocked is None:
            step.block(self.full or Blocked.ORDER)

    def pass_idle(self) -> None:
        """A round with nobody in the engine, where rounds are counted (`stepwise`)."""
        self._decodes_due = max(self._decodes_due - 1, 0)

    def decoded(self) -> None:
        """A step in which everyone decoded and nothing had to be decided."""
        self.ratio.decay()
        self._decodes_due = max(self._decodes_due - 1, 0)

    def running(self, step: StepBuilder) -> list[Sequence]:
        """Whose prefill is done, in their order."""
        return [sequence for sequence in step.running() if sequence is not self.chunked]

    def num_running(self, step: StepBuilder) -> int:
        """How many these are."""
        return step.num_running - (self.chunked is not None)

    # What the last step left

    def _take_in(self, step: StepBuilder) -> None:
        core, last = step.core, self._last
        self._last = []
        if not self._stepwise and core.emptied_ns != self._last_emptied_ns:
            self._last_emptied_ns = core.emptied_ns
            if core.emptied_ns is not None and core.emptied_ns < core.now_ns:
                self.ratio.reset()
        if self.chunked is not None and self.chunked.id not in core.sequences:
            self.chunked = None  # aborted
        if self.chunked is not None:
            cache = radix_cache_of(step.core)
            if last or self.chunked.computed > self.chunked.num_locked:
                cache.enter(self.chunked, self.chunked.computed)
        left, self._num_left = core.num_left - self._num_left, core.num_left
        merged = [s for s in last if s is not self.chunked and s.id in core.sequences]
        num_before = 0 if self._was_mixed else self.num_running(step) - len(merged)
        held_out = self.chunked is not None and self.chunked in last
        if left or held_out or (merged and not num_before) or not self.num_running(step):
            self.full = None
        self._was_mixed = False

    # Prefill

    def _prefill(self, step: StepBuilder) -> bool:
        if self._decodes_due:
            self._decodes_due -= 1
            if self._stepwise or self.num_running(step):
                return False
            self._decodes_due = 0  # rounds without work take no time
        if self.preempts_by_priority:
            self.full = None
        waits = step.next_waiting() is not None
        if self.chunked is None and (not waits or self.full is not None):
            return False
        slots = step.config.max_num_seqs - self.num_running(step)
        if slots <= 0 and self.chunked is None and not self.preempts_by_priority:
            self.full = Blocked.SLOTS
            return False
        if waits:
            self._order(step)
        batch = PrefillBatch(step, self)
        batch.build(slots)
        self.chunked = batch.chunked
        if not batch.members:
            return False
        self._decodes_due = self._interval
        self._last = batch.members
        self._was_mixed = batch.launch()
        return True

    def _order(self, step: StepBuilder) -> None:
        """Order the queue; now and then refresh the prefixes of those in front, if the order looked none up."""
        cache = radix_cache_of(step.core)
        before = cache.num_lookups
        step.order_waiting()
        if cache.num_lookups != before or not cache.caching or not getattr(cache.eviction, "by_release", False):
            return
        if self._num_sorts % REFRESH_EVERY == 0:
            queue = list(step.core.waiting)[:REFRESHED]
            for sequence in reversed(queue):
                cache.match_known(sequence)
        self._num_sorts += 1

    # Decode

    def _decode(self, step: StepBuilder) -> None:
        if not self.num_running(step):
            return
        if step.decode_all(self.loose_decodes(step)):
            self.ratio.decay()
            return
        self.full = None
        if make_room_for_decodes(step, self):
            served = step.decode_all(self.loose_decodes(step))
            assert served, "memory does not suffice after a retraction"

    def loose_decodes(self, step: StepBuilder) -> list[tuple[Sequence, int]]:
        """Running sequences outside the decode batch that are due a token."""
        return [(s, 1) for s in step.loose() if s is not self.chunked and s not in step.rows and step.wanted(s) > 0]
