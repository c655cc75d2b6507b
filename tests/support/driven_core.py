"""A core driven by hand, beside a plain account of which plan gave whom how many tokens, and when they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from typing import Any

from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.estimator import StepTimeEstimator
from llmsim.policies.core.plan import StepEvents, StepPlan, StepResult
from llmsim.policies.core.records import RequestRecord, Status
from llmsim.policies.core.request import Prompt, Request
from llmsim.policies.core.sequence import Sequence

VLLM: dict[str, dict[str, Any]] = {
    "batching": {"name": "unified"},
    "scheduling": {"name": "fcfs"},
    "preemption": {"name": "newest"},
    "chunk_size": {"name": "unlimited"},
    "eviction": {"name": "lru"},
}
BY_PRIORITY = VLLM | {"scheduling": {"name": "priority"}, "preemption": {"name": "least_urgent"}}


def core_of(
    specs: Mapping[str, Mapping[str, Any]] = VLLM, *, estimator: StepTimeEstimator | None = None, **limits: Any
) -> EngineCore:
    """A core with these policies and limits."""
    return EngineCore(EngineConfig(**limits), Policies.of(specs, estimator=estimator))


def request_of(name: str, num_prompt: int, max_tokens: int, *, arrival_ns: int = 0, priority: int = 0) -> Request:
    """A request whose prompt and output are content of its own."""
    number = int.from_bytes(name.encode(), "big")
    return Request(name, arrival_ns, Prompt([(2 * number, 0, num_prompt)]), max_tokens, 2 * number + 1, priority)


@dataclass
class Account:
    """What is known of a request without asking the core."""

    request: Request
    record: RequestRecord
    is_alive: bool = True
    num_outputs: int = 0
    times_ns: list[int] = field(default_factory=list)
    """When its output chunks came."""


@dataclass
class Flight:
    """A plan on its way: the tokens it gives, by request id in order of admission, and who samples."""

    plan: StepPlan
    given: dict[str, int]
    drafts: dict[str, int]
    samplers: list[str]


class DrivenCore:
    """Adds, aborts, plans and commits in any order that the core allows."""

    def __init__(
        self,
        core: EngineCore,
        stops: Mapping[str, int] | None = None,
        accepts: Mapping[str, Items[int]] | None = None,
        outputs: Mapping[str, Items[int]] | None = None,
    ) -> None:
        """`stops`: outputs after which requests end by themselves; `outputs`: literal tokens to deliver."""
        self.core = core
        self.accounts: dict[str, Account] = {}
        self.pipe: deque[Flight] = deque()
        self.flights: list[Flight] = []
        """All that were ever planned."""
        self._stops = stops or {}
        self._accepts = accepts or {}
        self._num_verified: dict[str, int] = {}
        self._outputs = outputs
        self.result = StepResult(0)
        """Of the latest commit."""

    @property
    def is_busy(self) -> bool:
        """Whether there is anything to plan or to commit."""
        return bool(self.core.running or self.core.waiting or self.pipe)

    def add(self, request: Request, now_ns: int) -> RequestRecord:
        """Give the core a request."""
        record = self.core.add_request(request, now_ns)
        self.accounts[request.id] = Account(request, record, is_alive=record.status is not Status.REFUSED)
        return record

    def abort(self, request_id: str, now_ns: int) -> RequestRecord | None:
        """Abort a request."""
        self.accounts[request_id].is_alive = False
        return self.core.abort(request_id, now_ns)

    def plan(self, now_ns: int) -> Flight | None:
        """Plan a step."""
        plan = self.core.plan_step(now_ns)
        if plan is None:
            return None
        given = {row.sequence: row.num_tokens for row in plan.rows}
        members = self._members(plan)
        assert len(members) == plan.num_decodes, (len(members), plan.num_decodes)
        assert not given.keys() & set(members), "a sequence is in the batch and outside it"
        samplers = [row.sequence for row in plan.rows if row.samples] + members
        given |= dict.fromkeys(members, 1)
        ordered = sorted(given, key=lambda sequence: sequence.admission)
        flight = Flight(
            plan,
            {sequence.id: given[sequence] for sequence in ordered},
            {row.sequence.id: row.num_drafts for row in plan.rows if row.num_drafts},
            [s.id for s in sorted(samplers, key=lambda sequence: sequence.admission)],
        )
        self.pipe.append(flight)
        self.flights.append(flight)
        return flight

    def _members(self, plan: StepPlan) -> list[Sequence]:
        number = plan.batch_number
        if number is None:
            return []
        return [s for s in self.core.batch.members() if s.joined < number] + list(plan.detached)

    def commit(self, now_ns: int) -> StepEvents:
        """Commit the oldest plan; requests stop and drafts are accepted as foretold."""
        flight = self.pipe.popleft()
        tokens: dict[str, list[int]] = {}
        accepted: dict[str, int] = {}
        stopped = []
        for name in flight.samplers:
            account = self.accounts[name]
            if not account.is_alive:
                continue
            num_new = 1
            if name in flight.drafts:
                accepted[name] = self._num_accepted(account, flight.drafts[name])
                num_new += accepted[name]
            if self._outputs is not None:
                tokens[name] = list(self._outputs[name][account.num_outputs : account.num_outputs + num_new])
            account.num_outputs += num_new
            account.times_ns.append(now_ns)
            if account.num_outputs >= self._stops.get(name, account.request.max_tokens):
                account.is_alive = False
                if name in self._stops:
                    stopped.append(name)
        self.result = StepResult(0, stopped, accepted or None, None if self._outputs is None else tokens)
        return self.core.commit_step(flight.plan, self.result, now_ns)

    def _num_accepted(self, account: Account, num_drafts: int) -> int:
        name = account.request.id
        accepts, number = self._accepts.get(name) or (0,), self._num_verified.get(name, 0)
        self._num_verified[name] = number + 1
        return min(accepts[number % len(accepts)], num_drafts, account.request.max_tokens - account.num_outputs - 1)

    def step(self, now_ns: int) -> Flight | None:
        """Fill the pipe by one plan; commit the oldest when it is full, or when there is nothing to plan."""
        flight = self.plan(now_ns)
        if self.pipe and (flight is None or len(self.pipe) == self.core.config.depth):
            self.commit(now_ns)
        return flight

    def run(self, now_ns: int = 0, step_ns: int = 10) -> int:
        """Step until all is done; returns the time of the end."""
        while self.is_busy:
            if len(self.pipe) == self.core.config.depth:
                self.commit(now_ns)
            else:
                self.step(now_ns)
            now_ns += step_ns
        return now_ns
