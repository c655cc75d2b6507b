"""The core decides as SGLang's real scheduler does, for tokens and for spans of content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from llmsim.policies.core.request import Prompt
from llmsim.scenarios.log_comparison import first_difference
from llmsim.scenarios.sglang_decisions import SglangDecisions
from llmsim.tests.support.golden import golden_case, golden_names
from llmsim.tests.support.token_spans import UNIQUE_FROM, span_of_token


def checked(decisions: SglangDecisions) -> Iterator[dict[str, Any]]:
    """The log of a run whose core is checked for integrity at every step."""
    for line in decisions.log():
        decisions.core.check_integrity()
        yield line
    assert decisions.core.num_free_blocks == decisions.core.config.num_blocks - 1


@pytest.mark.parametrize("name", golden_names("sglang"))
def test_every_step_of_a_golden_case_is_the_real_schedulers(name: str) -> None:
    case = golden_case("sglang", name)
    assert first_difference(case["log"], list(checked(SglangDecisions(case)))) is None


class SpanDecisions(SglangDecisions):
    """The same with prompts as spans of named content, outputs never spelled out: as the simulator runs them."""

    literal = False

    def __init__(self, case: Mapping[str, Any]) -> None:
        super().__init__(case)
        self._index = {request["id"]: index for index, request in enumerate(case["requests"])}

    def _content(self, request: Mapping[str, Any]) -> tuple[Prompt, int]:
        return Prompt(span_of_token(token) for token in request["prompt_token_ids"]), UNIQUE_FROM + self._index[
            request["id"]
        ]


def without_own_outputs() -> list[str]:
    """Cases whose outputs are tokens that appear nowhere else unless a prompt continues them."""
    cases = {name: golden_case("sglang", name) for name in golden_names("sglang")}
    return [name for name, case in cases.items() if not any("output_token_ids" in r for r in case["requests"])]


@pytest.mark.parametrize("name", without_own_outputs())
def test_spans_decide_as_their_tokens(name: str) -> None:
    case = golden_case("sglang", name)
    assert first_difference(case["log"], list(checked(SpanDecisions(case)))) is None


def test_a_case_that_can_never_go_on_is_said_to_be_stuck() -> None:
    request = {"id": "big", "arrival_step": 0, "prompt_token_ids": [1] * 50, "output_len": 60}
    with pytest.raises(ValueError, match="nothing runs and nothing can be admitted; 1 wait for ever"):
        list(SglangDecisions({"config": {"max_total_tokens": 100}, "requests": [request]}).log())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"block_size": 16}, "config.block_size: unknown key"),
        ({"page_size": "1"}, "config.page_size: '1' is not of the type of 1"),
        ({"page_size": 0}, "config.page_size: 0 is out of range; at least 1"),
        ({"schedule_policy": "fair"}, "config.schedule_policy: 'fair' is unknown; choose fcfs"),
        ({"radix_eviction_policy": "best"}, "'best' is unknown"),
    ],
)
def test_a_wrong_configuration_is_named(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SglangDecisions({"config": config, "requests": []})
