"""vLLM V1's scheduler in plain Python, request by request (specs/vllm_v1.md)."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from typing import Any

from .plain_memory import PlainMemory
from .plain_pool import Block
from .plain_request import PlainRequest, PlainStep


class PlainScheduler:
    """Decides step by step; `seen` counts the rarer things that happened, to tell what a case covers."""

    def __init__(self, config: dict[str, Any], seen: Counter[str]) -> None:
        self.seen = seen
        self.max_num_seqs: int = config["max_num_seqs"]
        self.max_num_batched_tokens: int = config["max_num_batched_tokens"]
        self.threshold: int = config.get("long_prefill_token_threshold", 0)
        self.num_drafts: int = config.get("num_speculative_tokens", 0)
        self.is_priority = config.get("policy", "fcfs") == "priority"
        self.is_async = bool(config.get("async_scheduling", False))
        self.is_chunked = bool(config.get("enable_chunked_prefill", True))
        self.memory = PlainMemory(config, seen)
        self.running: list[PlainRequest] = []
        self.waiting: list[PlainRequest] = []

    def add(self, request: PlainRequest) -> None:
        """Put an arrival into the waiting queue."""
        if self.is_priority:
            insort(self.waiting, request, key=lambda r: r.order)
        else:
            self.waiting.append(request)

    def schedule(self) -> PlainStep:
        """Compose the next step and apply it at once."""
        is_alone = len(self.running) + len(self.waiting) <= 1
        threshold = None if is_alone or self.threshold == 0 else self.threshold
        step = PlainStep(self.max_num_batched_tokens, threshold)
        self._schedule_running(step)
        if not step.preempted:
            self._schedule_waiting(step)
        for request, num_tokens in step.scheduled.items():
            self._advance(step, request, num_tokens)
        return step

    def _advance(self, step: PlainStep, request: PlainRequest, num_tokens: int) -> None:
        request.computed += num_tokens
        if request.computed >= len(request.tokens) + request.placeholders:
            step.samples.add(request)
            request.placeholders += self.is_async

    def _schedule_running(self, step: PlainStep) -> None:
        index = 0
        while index < len(self.running) and step.budget > 0:
            request = self.running[index]
            num_tokens = self._wanted_running(step, request)
            if num_tokens == 0:
                index += 1
                continue
            # A victim that was skipped in this step leaves the index where it is, though the list moves up.
            index -= self._make_room(step, request, num_tokens)
            if request.status == "running":
                self._extend(step, request, num_tokens)
                index += 1
            elif self.is_priority:
                self.seen["other requests go on after a self-preemption"] += index < len(self.running)
            else:
                return

    def _wanted_running(self, step: PlainStep, request: PlainRequest) -> int:
        if self._is_certain_to_end(request):
            return 0
        left = len(request.tokens) + request.drafts + request.placeholders - request.computed
        return min(left, step.threshold or left, step.budget)

    def _is_certain_to_end(self, request: PlainRequest) -> bool:
        """Whether the token in flight is known to be the last one."""
        end = request.computed + 2 - request.placeholders
        return request.placeholders > 0 and end >= request.prompt_len + len(request.outputs)

    def _extend(self, step: PlainStep, request: PlainRequest, num_tokens: int) -> None:
        num_drafts = 0
        if request.drafts > 0:
            num_drafts = max(0, request.computed + num_tokens - len(request.tokens))
            self.seen["drafts clipped"] += num_drafts < request.drafts
        # Only a request whose last step sampled nothing carries no drafts: its prefill goes on or ends here.
        step.num_running_chunks += request.drafts == 0
        self.memory.place(request, num_tokens)
        step.give(request, num_tokens, num_drafts)
        request.drafts = 0

    def _make_room(self, step: PlainStep, request: PlainRequest, num_tokens: int) -> int:
        """Preempt until `request` fits or is itself the victim; return how many victims the step had held."""
        num_taken_back = 0
        while request.status == "running" and not self.memory.fits_running(request, num_tokens):
            victim = max(self.running, key=lambda r: r.order) if self.is_priority else self.running[-1]
            is_before = self.running.index(victim) < self.running.index(request)
            was_scheduled = self._preempt(step, victim)
            num_taken_back += was_scheduled
            self.seen["victim scheduled earlier in the step"] += was_scheduled
            self.seen["victim skipped earlier in the step"] += is_before and not was_scheduled
        return num_taken_back

    def _preempt(self, step: PlainStep, victim: PlainRequest) -> bool:
        """Take everything from a victim; true if it had been scheduled earlier in this step."""
        self.running.remove(victim)
        self.memory.release(victim)
        victim.drafts, victim.status = 0, "waiting"
        if self.is_priority:
            self.add(victim)
        else:
            self.waiting.insert(0, victim)
        step.preempted.append(victim)
        return step.take_back(victim)

    def _schedule_waiting(self, step: PlainStep) -> None:
        step.num_running = len(step.scheduled)
        while self.waiting and step.budget > 0 and len(self.running) < self.max_num_seqs:
            request = self.waiting[0]
            found = self.memory.find(request)
            left = len(request.tokens) - len(found) * self.memory.block_size
            num_tokens = min(left, step.threshold or left)
            if not self.is_chunked and num_tokens > step.budget:
                return
            num_drafts = self._num_padding(step, left, bool(found))
            num_tokens = min(num_tokens, step.budget) + num_drafts
            if num_tokens > step.budget:
                return
            if not self.memory.fits_waiting(request, found, num_tokens, alone=not self.running):
                return
            self._admit(step, request, found)
            self.memory.place(request, num_tokens)
            step.give(request, num_tokens, num_drafts)

    def _num_padding(self, step: PlainStep, num_left: int, has_hit: bool) -> int:
        """Placeholder drafts, which make a request with just one token left look like a decode."""
        if num_left != 1 or step.num_running_chunks > 0:
            return 0
        return self.num_drafts if step.num_running > 0 or has_hit else 0

    def _admit(self, step: PlainStep, request: PlainRequest, found: list[Block]) -> None:
        del self.waiting[0]
        self.memory.share(request, found)
        request.status = "running"
        self.running.append(request)
        admissions = step.resumed if request.was_admitted else step.new
        admissions[request] = request.computed
        request.was_admitted = True

    def update(self, step: PlainStep) -> list[PlainRequest]:
        """Process a step's outputs in order; return the requests that finished."""
        for request, num_tokens in step.scheduled.items():
            self._process(step, request, num_tokens)
        self.running = [request for request in self.running if request.status != "finished"]
        self.waiting = [request for request in self.waiting if request.status != "finished"]
        return [request for request in step.scheduled if request.status == "finished"]

    def _process(self, step: PlainStep, request: PlainRequest, num_tokens: int) -> None:
        if request not in step.samples:
            return
        num_drafts = step.drafts.get(request, 0)
        num_accepted = request.accept_drafts(num_drafts)
        request.computed -= num_drafts - num_accepted
        request.sample(1 + num_accepted)
        request.placeholders -= self.is_async
        if request.status == "running":
            request.drafts = self.num_drafts
            self.memory.enter(request, request.computed - request.placeholders)
        if request.is_complete:
            self._finish(request)

    def _finish(self, request: PlainRequest) -> None:
        self.seen["finished from the waiting queue"] += request.status == "waiting"
        self.memory.release(request)
        request.status = "finished"
