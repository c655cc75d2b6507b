"""SGLang's preemption by priority: running requests make way for one that is far more urgent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.sequence import Sequence
from .prefill_budget import MAX_RESERVED_TOKENS
from .retraction import retract

if TYPE_CHECKING:
    from .prefill_batch import PrefillBatch

LEAST_GAP = 10
"""Only a gap in priority above this counts."""


class PriorityPreemption:
    """The victims of one prefill batch; they enter the queue anew when it is complete."""

    def __init__(self, batch: PrefillBatch) -> None:
        self._batch = batch
        self._victims: list[Sequence] = []

    @property
    def num_victims(self) -> int:
        """Running sequences that made way so far."""
        return len(self._victims)

    def make_way(self, candidate: Sequence) -> bool:
        """Retract the least urgent until `candidate` fits; nothing changes where that is not enough.

        Who they are is found from the least urgent on; they go in the order in which they run.
        """
        batch, chosen = self._batch, self._enough_for(candidate)
        victims = [sequence for sequence in batch.running if sequence in chosen]
        for victim in victims:
            batch.budget.reserved -= batch.reservation(victim)
            batch.running.remove(victim)
            retract(batch.step, victim, len(batch.running))
            batch.step.core.waiting.remove(victim)
            self._victims.append(victim)
        return bool(victims)

    def _enough_for(self, candidate: Sequence) -> list[Sequence]:
        batch, budget = self._batch, self._batch.budget
        outputs = min(candidate.end - candidate.prompt_tokens, MAX_RESERVED_TOKENS)
        wanted = candidate.num_tokens + outputs + batch.cache.block_size - budget.memory_left
        victims: list[Sequence] = []
        for sequence in sorted(batch.running, key=lambda s: (s.request.priority, s.entry), reverse=True):
            if sequence.request.priority - candidate.request.priority <= LEAST_GAP:
                break
            victims.append(sequence)
            wanted -= batch.reservation(sequence)
            if wanted <= 0:
                return victims
        return []

    def requeue(self) -> None:
        """Put the victims into the queue, in the order in which they were taken."""
        core = self._batch.step.core
        for victim in self._victims:
            core.note_entry(victim)
            core.policies.scheduling.insert(core.waiting, victim)
