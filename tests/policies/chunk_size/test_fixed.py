"""A fixed chunk size caps the prefill tokens of a step, not its decodes."""

from __future__ import annotations

import pytest

from llmsim.policies.core.records import Blocked
from llmsim.policies.registry import PolicyError
from llmsim.tests.support.driven_core import VLLM, DrivenCore, core_of, request_of


def run(tokens: int, prompts: list[int], *, budget: int = 100) -> DrivenCore:
    specs = VLLM | {"chunk_size": {"name": "fixed", "tokens": tokens}}
    driven = DrivenCore(core_of(specs, num_blocks=99, max_num_batched_tokens=budget))
    for name, num_prompt in zip("abc", prompts, strict=False):
        driven.add(request_of(name, num_prompt, 3), 0)
    driven.run()
    return driven


def given(driven: DrivenCore) -> list[dict[str, int]]:
    return [flight.given for flight in driven.flights]


def test_a_prompt_is_cut_into_chunks_of_that_size() -> None:
    driven = run(8, [20])
    assert given(driven) == [{"a": 8}, {"a": 8}, {"a": 4}, {"a": 1}, {"a": 1}]
    assert driven.accounts["a"].record.num_chunks == 3


def test_what_one_prompt_leaves_of_the_chunk_goes_to_the_next() -> None:
    driven = run(8, [5, 5])
    assert given(driven)[:2] == [{"a": 5, "b": 3}, {"a": 1, "b": 2}]


def test_decodes_are_not_counted() -> None:
    driven = run(2, [2, 2, 2])
    assert given(driven)[:3] == [{"a": 2}, {"a": 1, "b": 2}, {"a": 1, "b": 1, "c": 2}]
    assert [flight.plan.num_prefill_tokens for flight in driven.flights[:3]] == [2, 2, 2]


def test_a_running_prefill_comes_before_an_admission() -> None:
    driven = run(4, [6, 6])
    assert given(driven)[:3] == [{"a": 4}, {"a": 2, "b": 2}, {"a": 1, "b": 4}]


def test_who_finds_no_chunk_left_is_blocked_by_it() -> None:
    driven = run(4, [4, 4])
    assert driven.flights[0].plan.blocked is Blocked.CHUNK
    assert driven.accounts["b"].record.blocked_by is Blocked.CHUNK


def test_the_smaller_of_chunk_and_budget_wins() -> None:
    assert given(run(8, [20], budget=5))[0] == {"a": 5}
    assert given(run(5, [20], budget=8))[0] == {"a": 5}


@pytest.mark.parametrize("tokens", [0, -3])
def test_a_chunk_holds_one_token_at_least(tokens: int) -> None:
    with pytest.raises(PolicyError, match=f"^{tokens} is out of range; at least 1"):
        run(tokens, [])
