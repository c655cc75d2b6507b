"""A threshold caps the tokens of each request, while others are there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmsim.policies.registry import PolicyError
from llmsim.tests.support.driven_core import VLLM, DrivenCore, core_of, request_of


def run(tokens: int, prompts: list[int]) -> DrivenCore:
    specs = VLLM | {"chunk_size": {"name": "threshold", "tokens": tokens}}
    driven = DrivenCore(core_of(specs, num_blocks=99))
    for name, num_prompt in zip("abc", prompts, strict=False):
        driven.add(request_of(name, num_prompt, 2), 0)
    driven.run()
    return driven


def given(driven: DrivenCore) -> list[dict[str, int]]:
    return [flight.given for flight in driven.flights]


def test_each_request_gets_that_many_tokens_at_most() -> None:
    assert given(run(8, [20, 10]))[:3] == [{"a": 8, "b": 8}, {"a": 8, "b": 2}, {"a": 4, "b": 1}]


def test_a_request_that_is_alone_is_not_cut() -> None:
    assert given(run(8, [20])) == [{"a": 20}, {"a": 1}]


def test_the_last_one_left_is_not_cut_any_more() -> None:
    assert given(run(8, [30, 2])) == [{"a": 8, "b": 2}, {"a": 8, "b": 1}, {"a": 14}, {"a": 1}]


def test_a_threshold_is_one_token_at_least() -> None:
    with pytest.raises(PolicyError, match="0 is out of range"):
        run(0, [])


def test_a_threshold_that_holds_no_decode_with_its_drafts_asserts() -> None:
    """As it does inside vLLM: such a request would never get on."""
    specs = VLLM | {"chunk_size": {"name": "threshold", "tokens": 2}}
    driven = DrivenCore(core_of(specs, num_blocks=99, num_speculative_tokens=3, block_size=4))
    driven.add(request_of("a", 8, 20), 0)
    driven.step(0)
    driven.step(10)
    driven.add(replace(request_of("a", 5, 4), id="b"), 20)
    with pytest.raises(AssertionError, match="2 tokens a request hold no decode with its drafts"):
        driven.step(20)
