"""One attempt of the plain SGLang scheduler to build a prefill batch: who is admitted, with how many tokens."""

from __future__ import annotations

from typing import Literal

from .plain_sglang_memory import PlainSglangMemory
from .plain_sglang_request import PlainSglangRequest

Outcome = Literal["admitted", "no memory", "no budget"]


class PlainAdmission:
    """The budgets of one attempt, and what was admitted under them."""

    def __init__(
        self,
        memory: PlainSglangMemory,
        running: list[PlainSglangRequest],
        ratio: float,
        budgets: tuple[int | None, int],
        num_mixed: int,
    ) -> None:
        """`budgets` are the chunk size (None: no chunking) and the input cap; `num_mixed` decodes join the batch."""
        chunk_size, most_input = budgets
        self.memory, self.running, self.ratio = memory, running, ratio
        self.chunk_left = None if chunk_size is None else chunk_size - num_mixed
        self.input_left = most_input - num_mixed
        self.pending = num_mixed + sum(self.reservation(request) for request in running)
        self.pending_input = num_mixed
        self.admitted: dict[PlainSglangRequest, int] = {}
        self.chunk: PlainSglangRequest | None = None
        self.states: list[tuple[float, int]] | None = None
        """(tokens left, tokens held) of those that are simulated to their ends, where eos is ignored."""

    def reservation(self, request: PlainSglangRequest) -> float:
        """What a running request is expected to need yet."""
        return request.still_new * self._ratio_of(request)

    @property
    def memory_left(self) -> float:
        """Free, or free to be made, and not spoken for."""
        return self.memory.num_available - self.pending

    @property
    def input_memory_left(self) -> int:
        """The same without anything for outputs."""
        return self.memory.num_available - self.pending_input

    @property
    def is_short_of_memory(self) -> bool:
        return self.memory_left <= 0 or self.input_memory_left <= 0

    @property
    def is_short_of_budget(self) -> bool:
        return self.input_left <= 0 or (self.chunk_left is not None and self.chunk_left <= 0)

    def go_on(self, request: PlainSglangRequest) -> None:
        """The chunked request of the last round continues, whether there is memory or not."""
        assert self.chunk_left is not None
        num_left = len(request.tokens) - request.num_kv
        most = min(self.chunk_left, int(self.memory_left))
        if most <= 0:
            most = self.chunk_left
        self._admit(request, min(num_left, most), num_left > most)

    def add(self, request: PlainSglangRequest) -> Outcome:
        """Try to admit a waiting request."""
        self.memory.start(request)
        if request.ignores_eos and not self.memory.is_caching:
            outcome = self._add_to_its_end(request)
        else:
            outcome = self._add(request)
        if outcome != "admitted":
            self.memory.give_back(request)
        return outcome

    def _add(self, request: PlainSglangRequest) -> Outcome:
        page, num_left = self.memory.page, len(request.tokens) - request.num_kv
        if num_left + request.still_new + page >= self.memory_left:
            return "no memory"
        whole = self.memory.ceil(num_left)
        if self.chunk_left is None:
            if self.admitted and whole >= self.input_left:
                return "no budget"
        elif whole > self.chunk_left:
            part = self.memory.floor(self.chunk_left)
            if part <= 0:
                return "no budget"
            return self._admit(request, part, is_chunked=True)
        return self._admit(request, num_left, is_chunked=False)

    def _add_to_its_end(self, request: PlainSglangRequest) -> Outcome:
        """Admit a request if all can run to their ends in turn, each giving back what it held."""
        num_left = len(request.tokens)
        taken = self.memory.ceil(num_left) + self.memory.page
        if taken > min(self.memory_left, self.input_memory_left):
            return "no memory"
        self._enter_state(request)
        assert self.states is not None
        free = self.input_memory_left - taken
        for index, (left, held) in enumerate(self.states):
            num_alive = len(self.states) - index
            if free - left * num_alive <= num_alive:
                return "no memory"
            free += held
        if self.chunk_left is not None and num_left > self.chunk_left:
            if self.chunk is not None:
                return "no budget"  # one is cut at a time
            return self._admit(request, self.chunk_left, is_chunked=True)
        return self._admit(request, num_left, is_chunked=False)

    def _enter_state(self, request: PlainSglangRequest) -> None:
        if self.states is None:
            states = [self._state(r) for r in (request, *self.running, *self.admitted)]
            self.states = sorted((s for s in states if s[0] > 0), key=lambda s: s[0])
            return
        state = self._state(request)
        larger = [i for i, other in enumerate(self.states) if other[0] >= state[0]]
        self.states.insert(larger[0] if larger else max(0, len(self.states) - 1), state)

    def _state(self, request: PlainSglangRequest) -> tuple[float, int]:
        return len(request.answer) * self._ratio_of(request) - request.num_outputs, len(request.tokens)

    def _ratio_of(self, request: PlainSglangRequest) -> float:
        """The share of its outputs that a request is expected to say: all, where no token can end it early."""
        return 1.0 if request.ignores_eos else self.ratio

    def _admit(self, request: PlainSglangRequest, num_tokens: int, is_chunked: bool) -> Outcome:
        self.admitted[request] = num_tokens
        if is_chunked:
            assert self.chunk is None
            self.chunk = request
        whole = self.memory.ceil(num_tokens)
        self.input_left -= whole
        if self.chunk_left is not None:
            self.chunk_left -= whole
        self.pending_input += whole + self.memory.page
        self.pending += whole + self.memory.page + (0 if is_chunked else request.max_new)
        return "admitted"
