"""SGLang's scheduler in plain Python, round by round, without overlap (specs/sglang.md)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .plain_sglang_admission import PlainAdmission
from .plain_sglang_memory import PlainSglangMemory
from .plain_sglang_orders import PlainOrders
from .plain_sglang_request import PlainRound, PlainSglangRequest

STEPS_AHEAD = 20
"""Tokens a request that are made free when memory has run out."""
LEAST_GAP = 10
"""Priorities must be further apart than this for one to give way to the other."""


class OutOfMemory(Exception):
    """A chunk that goes on does not fit: nobody asks whether it does."""


class PlainSglang:
    """Decides round by round; `seen` counts the rarer things that happened, to tell what a case covers."""

    def __init__(self, config: dict[str, Any], requests: list[PlainSglangRequest], seen: Counter[str]) -> None:
        self.seen = seen
        self.memory = PlainSglangMemory(config, requests)
        self.orders = PlainOrders(config, self.memory, seen)
        chunk_size = config["chunked_prefill_size"]
        self.budgets = (chunk_size if chunk_size > 0 else None, config["max_prefill_tokens"])
        self.max_running: int = config["max_running_requests"]
        self.is_mixed = config["enable_mixed_chunk"] and chunk_size > 0
        self.preempts: bool = config["enable_priority_scheduling"]
        self.interval: int = config["prefill_decode_interval"]
        self.interval_left = 0
        self.first_ratio = self.ratio = min(0.7 * config["schedule_conservativeness"], 1.0)
        self.waiting: list[PlainSglangRequest] = []
        self.running: list[PlainSglangRequest] = []
        self.last: list[PlainSglangRequest] = []
        """The prefill batch of the last round."""
        self.chunk: PlainSglangRequest | None = None
        self.is_full = False
        self.num_entries = 0

    def add(self, request: PlainSglangRequest) -> None:
        """Put a request at the queue's end."""
        self.num_entries += 1
        request.entry = self.num_entries
        request.prefilled_before = self.orders.num_prefilled
        self.waiting.append(request)

    def play(self) -> PlainRound:
        """Compose the next round and take its memory."""
        if self.chunk is not None:
            self.memory.enter(self.chunk)
        self._drop_and_join()
        result = PlainRound()
        if not self._prefill(result):
            self._decode(result)
        return result

    def _drop_and_join(self) -> None:
        joining = [r for r in self.last if not r.is_complete and r is not self.chunk]
        staying = [r for r in self.running if not r.is_complete]
        if len(joining) < len(self.last) or len(staying) < len(self.running) or (joining and not staying):
            self.is_full = False
        self.running, self.last = staying + joining, []

    def _prefill(self, result: PlainRound) -> bool:
        """Try to build a prefill batch."""
        if self.interval_left > 0:
            self.interval_left -= 1
            self.seen["prefill put off by the interval"] += bool(self.waiting or self.chunk)
            return False
        if self.preempts or not self.running:
            self.is_full = False
        if (self.is_full or not self.waiting) and self.chunk is None:
            return False
        if len(self.running) >= self.max_running and self.chunk is None and not self.preempts:
            self.is_full = True
            return False
        self.orders.sort(self.waiting)
        admission = self._admission(result)
        if not admission.admitted:
            return False
        self._compose(admission, result)
        return True

    def _admission(self, result: PlainRound) -> PlainAdmission:
        num_mixed = len(self.running) if self.is_mixed else 0
        admission = PlainAdmission(self.memory, self.running, self.ratio, self.budgets, num_mixed)
        if self.chunk is not None:
            self.seen["chunk goes on without memory"] += admission.memory_left <= 0
            admission.go_on(self.chunk)
        for request in list(self.waiting):
            if not self._takes(admission, request, result):
                break
        for victim in result.retracted:
            self.add(victim)
        return admission

    def _takes(self, admission: PlainAdmission, request: PlainSglangRequest, result: PlainRound) -> bool:
        """Look at one candidate; whether to look at the next."""
        if admission.is_short_of_budget and not admission.is_short_of_memory:
            return False
        if len(self.running) + len(admission.admitted) >= self.max_running:
            self.is_full = True
        if self.is_full and not (self.preempts and self._preempt(admission, request, result)):
            return False
        outcome = admission.add(request)
        self.seen["simulated to its end"] += outcome == "admitted" and bool(admission.states)
        if outcome == "admitted":
            self.waiting.remove(request)
            self.is_full = self.is_full or admission.is_short_of_memory
            return not admission.is_short_of_memory
        if outcome == "no memory" and (self.running or admission.admitted):
            self.is_full = True
        return False

    def _preempt(self, admission: PlainAdmission, request: PlainSglangRequest, result: PlainRound) -> bool:
        """Make less urgent ones give way, if that makes room enough."""
        wanted = len(request.tokens) + request.max_new + self.memory.page - admission.memory_left
        victims = []
        for other in sorted(self.running, key=lambda r: (-self.orders.urgency(r), -r.entry)):
            if self.orders.urgency(other) - self.orders.urgency(request) <= LEAST_GAP:
                break
            victims.append(other)
            wanted -= admission.reservation(other)
            if wanted <= 0:
                break
        if not victims or wanted > 0:
            return False
        victims = [other for other in self.running if other in victims]
        for victim in victims:
            admission.pending -= admission.reservation(victim)
            self._retract(victim)
        result.retracted += victims
        self.seen["preempted by priority"] += len(victims)
        return True

    def _retract(self, request: PlainSglangRequest) -> None:
        self.running.remove(request)
        self.memory.give_back(request)
        self.memory.make_room(len(self.running) * STEPS_AHEAD)

    def _compose(self, admission: PlainAdmission, result: PlainRound) -> None:
        """Take the memory of what was admitted; decodes join where their memory suffices as well."""
        memory, self.chunk = self.memory, admission.chunk
        result.cached = {request: request.num_kv for request in admission.admitted}
        needed = sum(memory.num_to_extend(r, n) for r, n in admission.admitted.items())
        if not memory.make_room(needed):
            raise OutOfMemory
        for request, num_tokens in admission.admitted.items():
            request.num_kv += num_tokens
        result.prefills = dict(admission.admitted)
        if self.is_mixed and self.running:
            if memory.make_room(memory.num_to_decode(self.running)):
                result.decodes, self.running = self.running, []
            else:
                self.seen["decodes sit out a mixed step"] += 1
        for request in result.decodes:
            request.num_kv += 1
        self.last = result.members
        self.interval_left = self.interval
        self.orders.num_prefilled += sum(result.prefills.values())

    def _decode(self, result: PlainRound) -> None:
        if not self.running:
            return
        if self.memory.make_room(self.memory.num_to_decode(self.running)):
            least = self.first_ratio * 0.14
            self.ratio = max(self.ratio - (self.first_ratio - least) / 600, least)
        else:
            self._give_way(result)
            self.is_full = False
        for request in self.running:
            request.num_kv += 1
        result.decodes = list(self.running)

    def _give_way(self, result: PlainRound) -> None:
        """Retract until the others fit; the last one, if it does not, is aborted."""
        memory = self.memory
        self.running.sort(key=lambda r: (r.num_outputs, -len(r.prompt)), reverse=True)
        while len(self.running) > 1:
            result.retracted.append(victim := self.running[-1])
            self._retract(victim)
            if memory.make_room(memory.num_to_decode(self.running)):
                break
        if not memory.make_room(memory.num_to_decode(self.running)):
            result.aborted.append(victim := self.running[-1])
            self._retract(victim)
        for request in result.retracted:
            self.add(request)
        said = sum(r.num_outputs for r in self.running) + STEPS_AHEAD * len(self.running)
        self.ratio = min(1.0, said / (sum(len(r.answer) for r in self.running) + 1))

    def update(self, result: PlainRound) -> list[PlainSglangRequest]:
        """Process a round's outputs in the batch's order; returns who finished."""
        for request in result.members:
            if request.num_kv < len(request.tokens):
                continue
            request.num_outputs += 1
            if request in result.prefills or request.is_complete:
                self.memory.enter(request)
            if request.is_complete:
                self.memory.give_back(request)
        return [request for request in result.members if request.is_complete]
