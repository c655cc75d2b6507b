"""The core decides as SGLang's real scheduler does, and, where no log exists, as the plain one does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from llmsim.policies.core.request import Prompt
from llmsim.scenarios.log_comparison import first_difference
from llmsim.scenarios.sglang_decisions import SglangDecisions
from llmsim.tests.support.golden import golden_case, golden_names
from llmsim.tests.support.plain_sglang import PlainSglangRun
from llmsim.tests.support.plain_sglang_scheduler import OutOfMemory
from llmsim.tests.support.sglang_cases import random_case
from llmsim.tests.support.token_spans import UNIQUE_FROM, span_of_token

SEEDS_A_TEST = 50


def checked(decisions: SglangDecisions, every: int = 1) -> Iterator[dict[str, Any]]:
    """The log of a run whose core is checked for integrity now and then."""
    for number, line in enumerate(decisions.log()):
        if number % every == 0:
            decisions.core.check_integrity()
        yield line
    decisions.core.check_integrity()
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


def in_batch_order(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines with the order of their batches, which a comparison of dicts does not see."""
    return [line | {"order": list(line["batch"])} for line in lines]


def difference(case: dict[str, Any], decisions: SglangDecisions) -> str | None:
    """Where the core parts from the plain scheduler; both may run out of memory at a chunk that goes on."""
    want, got = PlainSglangRun(case).lines(), in_batch_order(until(ValueError, checked(decisions, 50)))
    return first_difference(in_batch_order(until(OutOfMemory, want)), got)


def until(error: type[Exception], lines: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The lines up to an error, which is told as a last line."""
    try:
        yield from lines
    except error:
        yield {"step": None, "batch": {}, "out of memory": True}


@pytest.mark.parametrize("first", range(0, 300, SEEDS_A_TEST))
def test_the_core_decides_as_the_plain_scheduler(first: int) -> None:
    for seed in range(first, first + SEEDS_A_TEST):
        case = random_case(seed)
        assert (found := difference(case, SglangDecisions(case))) is None, f"seed {seed}: {found}"


@pytest.mark.parametrize("first", range(10_000, 10_100, SEEDS_A_TEST))
def test_spans_decide_as_the_plain_scheduler_with_their_tokens(first: int) -> None:
    num_continuing = 0
    for seed in range(first, first + SEEDS_A_TEST):
        case = random_case(seed)
        for request in case["requests"]:
            request.pop("output_token_ids", None)
        assert (found := difference(case, SpanDecisions(case))) is None, f"seed {seed}: {found}"
        num_continuing += any(t >= UNIQUE_FROM for r in case["requests"] for t in r["prompt_token_ids"])
    assert num_continuing > 0, "no prompt continued an output"


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
