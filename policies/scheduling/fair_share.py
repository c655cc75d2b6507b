"""Equal service for all tenants: the virtual token counter."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace
from itertools import islice, takewhile

from ..core.sequence import Sequence, State
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register

Tenant = str | None
LOOKAHEAD = 32
"""How many are put in order for a step even where their prompts, taken whole, are more than its tokens."""


@register("scheduling", "fair_share")
class FairShare:
    """The tenant that was served least is next, its requests in order of arrival.

    A tenant's counter grows by `input_weight` for each prompt token that had to be computed, when its request is
    admitted, and by `output_weight` for each output token. Who comes back after a pause begins where the others stand,
    so nobody saves up service (VTC: Sheng et al., Fairness in Serving Large Language Models, OSDI 2024, algorithm 2,
    with its weights). Cached tokens are no service; what is preempted keeps its place and is not charged again.
    """

    requires = ("tenant",)

    def __init__(self, input_weight: float = 1.0, output_weight: float = 2.0) -> None:
        for name, weight in (("input_weight", input_weight), ("output_weight", output_weight)):
            if weight < 0:
                raise ValueError(f"{name}: {weight} is out of range; at least 0")
        self._input_weight = input_weight
        self._output_weight = output_weight
        self._counters: defaultdict[Tenant, float] = defaultdict(float)
        self._lines: dict[Tenant, deque[Sequence]] = {}
        """Of the tenants of whom someone waits; who has left the queue is taken out later."""
        self._queued: set[Sequence] = set()
        """All that stand in a line."""
        self._charged: dict[Sequence, int] = {}
        """Outputs charged, of those that have been admitted and have not ended."""
        self._last_left: Tenant = None

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """Last of its tenant's line; a tenant of whom nobody waited catches up with the others."""
        tenant, counters = sequence.request.tenant, self._counters
        if tenant not in self._lines:
            others = [counters[other] for other in self._lines] or [counters[self._last_left]]
            counters[tenant] = max(counters[tenant], min(others))
            self._lines[tenant] = deque()
        if sequence not in self._queued:  # else it was admitted and came back since the last `reorder`
            self._lines[tenant].append(sequence)
            self._queued.add(sequence)
        queue.append(sequence)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """Charge what was served since; put first whom the free slots may admit, behind those that came back."""
        self._tidy()
        self._charge(view)
        chosen = self._chosen(max(0, view.max_num_seqs - view.num_running), view.max_num_batched_tokens)
        back = list(takewhile(lambda sequence: sequence not in self._queued, queue))
        if list(islice(queue, len(back), len(back) + len(chosen))) != chosen:
            first = {*back, *chosen}
            queue.replace([*back, *chosen, *(sequence for sequence in queue if sequence not in first)])

    def _chosen(self, slots: int, budget: int) -> list[Sequence]:
        """Who may be admitted in this step: so many as have a slot, and prompts beyond a few that fill the budget."""
        chosen, num_tokens = [], 0
        for sequence in islice(self._by_service(), slots):
            chosen.append(sequence)
            num_tokens += sequence.prompt_tokens
            if num_tokens > budget and len(chosen) >= LOOKAHEAD:
                break
        return chosen

    def _tidy(self) -> None:
        """Who has been admitted or aborted leaves the head of its line; the admitted are charged their prompts."""
        for tenant, line in list(self._lines.items()):
            while line and not _waits(line[0]):
                sequence = line.popleft()
                self._queued.discard(sequence)
                if sequence.record.admitted_ns is not None and sequence not in self._charged:
                    computed = sequence.prompt_tokens - sequence.record.cached_tokens
                    self._counters[tenant] += self._input_weight * computed
                    self._charged[sequence] = 0
            if not line:
                del self._lines[tenant]
                self._last_left = tenant

    def _charge(self, view: EngineView) -> None:
        """Charge the outputs since the last step in which somebody waited."""
        for sequence, charged in self._charged.items():
            outputs = view.num_outputs(sequence)
            if outputs != charged:
                self._counters[sequence.request.tenant] += self._output_weight * (outputs - charged)
                self._charged[sequence] = outputs
        for sequence in [sequence for sequence in self._charged if sequence.state is State.ENDED]:
            del self._charged[sequence]

    def _by_service(self) -> Iterator[Sequence]:
        """Who waits, in the order in which they would be admitted if each were charged its prompt."""
        lines = enumerate(self._lines.items())
        heap = [(self._counters[tenant], number, iter(line)) for number, (tenant, line) in lines]
        heapify(heap)
        while heap:
            counter, number, line = heap[0]
            first = next((sequence for sequence in line if _waits(sequence)), None)
            if first is None:
                heappop(heap)
            else:
                heapreplace(heap, (counter + self._input_weight * first.prompt_tokens, number, line))
                yield first


def _waits(sequence: Sequence) -> bool:
    return sequence.state in (State.WAITING, State.PREEMPTED)
