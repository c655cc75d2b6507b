"""A scheduler's case under way: the core, driven without time, and a fake model that says the case's tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..policies.core.engine import EngineCore
from ..policies.core.plan import StepPlan
from ..policies.core.request import Prompt, Request
from ..policies.core.sequence import Sequence

Line = dict[str, Any]


class DrivenCase:
    """What the decision logs of all engines have in common."""

    literal = True
    """Whether outputs are delivered as tokens; else they are the requests' output content."""

    def __init__(self, case: Mapping[str, Any], core: EngineCore) -> None:
        self.case = case
        self.core = core
        self._requests: list[Mapping[str, Any]] = sorted(case["requests"], key=lambda r: r["arrival_step"])
        self._outputs = {r["id"]: output_tokens(r, i) for i, r in enumerate(case["requests"])}

    def _add(self, request: Mapping[str, Any]) -> None:
        """Give the core a request. Raises ValueError where it can never be served."""
        prompt, output_content = self._content(request)
        arrival, output_len = request["arrival_step"], request["output_len"]
        urgency, ignore_eos = self._urgency(request), bool(request.get("ignore_eos"))
        made = Request(request["id"], arrival, prompt, output_len, output_content, urgency, ignore_eos=ignore_eos)
        reason = self.core.refusal(made)
        if reason is not None:
            raise ValueError(f"request {made.id}: {reason}")
        self.core.add_request(made, arrival)

    def _urgency(self, request: Mapping[str, Any]) -> int:
        """A request's priority: smaller is more urgent."""
        return int(request.get("priority") or 0)

    def _content(self, request: Mapping[str, Any]) -> tuple[Prompt, int]:
        """Prompt and output content of a case's request: literal tokens."""
        return Prompt.of_tokens(request["prompt_token_ids"]), -1

    def _given(self, plan: StepPlan) -> dict[Sequence, int]:
        """Tokens that a plan gives, in running order."""
        given = {row.sequence: row.num_tokens for row in plan.rows}
        given |= dict.fromkeys(self._members(plan), 1)
        return dict(sorted(given.items(), key=lambda item: item[0].admission))

    def _members(self, plan: StepPlan) -> list[Sequence]:
        """Sequences that the plan gives a token as the decode batch."""
        number = plan.batch_number
        if number is None:
            return []
        return [s for s in self.core.batch.members() if s.joined < number] + list(plan.detached)

    def _next_tokens(self, sequence: Sequence, count: int) -> list[int]:
        """The next tokens that the fake model says."""
        first = self.core.num_outputs(sequence)
        return self._outputs[sequence.id][first : first + count]

    def _stuck(self, step: int) -> ValueError:
        waiting = self.core.num_waiting
        return ValueError(f"step {step}: nothing runs and nothing can be admitted; {waiting} wait for ever")


def output_tokens(request: Mapping[str, Any], index: int) -> list[int]:
    """The tokens that a case's request generates: its own, then unique ones that never match by chance."""
    tokens = list(request.get("output_token_ids") or ())
    return tokens + [1000000 + 100000 * index + j for j in range(len(tokens), request["output_len"])]
