"""The core decides as the real scheduler does, and, where no log exists, as the plain one does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from llmsim.policies.core.request import Prompt
from llmsim.scenarios.log_comparison import first_difference
from llmsim.scenarios.vllm_decisions import VllmDecisions
from llmsim.tests.support.cases import random_case
from llmsim.tests.support.golden import golden_case, golden_names
from llmsim.tests.support.plain_vllm import decision_log
from llmsim.tests.support.token_spans import UNIQUE_FROM, span_of_token

SEEDS_A_TEST = 100


def checked(decisions: VllmDecisions, every: int) -> Iterator[dict[str, Any]]:
    """The log of a run whose core is checked for integrity now and then."""
    for number, line in enumerate(decisions.log()):
        if number % every == 0:
            decisions.core.check_integrity()
        yield line
    decisions.core.check_integrity()
    assert decisions.core.num_free_blocks == decisions.core.config.num_blocks - 1


@pytest.mark.parametrize("name", golden_names("vllm"))
def test_every_step_of_a_golden_case_is_the_real_schedulers(name: str) -> None:
    case = golden_case("vllm", name)
    assert first_difference(case["log"], list(checked(VllmDecisions(case), 1))) is None


@pytest.mark.parametrize("first", range(0, 2000, SEEDS_A_TEST))
def test_the_core_decides_as_the_plain_scheduler(first: int) -> None:
    for seed in range(first, first + SEEDS_A_TEST):
        case = random_case(seed)
        difference = first_difference(decision_log(case), list(checked(VllmDecisions(case), 50)))
        assert difference is None, f"seed {seed}: {difference}"


class SpanDecisions(VllmDecisions):
    """The same with prompts as spans of named content, outputs never spelled out: as the simulator runs them."""

    literal = False

    def _content(self, request: Mapping[str, Any]) -> tuple[Prompt, int]:
        index = next(i for i, r in enumerate(self.case["requests"]) if r["id"] == request["id"])
        return Prompt(span_of_token(token) for token in request["prompt_token_ids"]), UNIQUE_FROM + index


@pytest.mark.parametrize("first", range(10_000, 10_600, SEEDS_A_TEST))
def test_spans_decide_as_their_tokens(first: int) -> None:
    num_cases = 0
    for seed in range(first, first + SEEDS_A_TEST):
        case = random_case(seed)
        for request in case["requests"]:
            request.pop("output_token_ids", None)
        difference = first_difference(decision_log(case), list(checked(SpanDecisions(case), 50)))
        assert difference is None, f"seed {seed}: {difference}"
        num_cases += any(t >= UNIQUE_FROM for r in case["requests"] for t in r["prompt_token_ids"])
    assert num_cases > 0, "no prompt continued an output"
