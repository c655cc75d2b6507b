"""A chunk shrinks in a straight line with the decodes that run, down to its least."""

from __future__ import annotations

from typing import Any

import pytest

from llmsim.policies.registry import PolicyError, create
from llmsim.tests.support.driven_core import VLLM, DrivenCore, core_of, request_of


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize(("num_decodes", "chunk"), [(0, 100), (1, 92), (4, 68), (10, 20), (12, 16), (20, 16)])
def test_each_decode_takes_its_weight_off_the_chunk(num_decodes: int, chunk: int, depth: int) -> None:
    weighted = {"chunk_size": {"name": "weighted", "decode_weight": 8}}
    driven = DrivenCore(core_of(VLLM | weighted, num_blocks=900, max_num_batched_tokens=100, depth=depth))
    for number in range(num_decodes):
        driven.add(request_of(f"d{number}", 1, 300), 0)
    for step in range(30):
        driven.step(step)
    assert driven.core.outlook.num_decodes == num_decodes
    driven.add(request_of("long", 500, 3), 30)
    driven.step(30)
    plan = driven.flights[-1].plan
    assert (plan.num_prefill_tokens, plan.num_decodes) == (chunk, num_decodes)


@pytest.mark.parametrize(
    ("spec", "key", "says"),
    [
        ({}, "decode_weight", "is missing; weighted needs it"),
        ({"decode_weight": 0.5}, "decode_weight", "0.5 is out of range; at least 1"),
        ({"decode_weight": 2, "least_tokens": 0}, "least_tokens", "0 is out of range; at least 1"),
    ],
)
def test_weights_and_least_are_checked(spec: dict[str, Any], key: str, says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        create("chunk_size", {"name": "weighted", **spec})
    assert (caught.value.key, str(caught.value)) == (key, says)
