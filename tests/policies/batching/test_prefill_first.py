"""What SGLang's round does in corners that no golden case reaches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from llmsim.policies.batching.new_token_ratio import NewTokenRatio
from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.request import Prompt, Request
from llmsim.policies.core.sequence import State
from llmsim.scenarios.sglang_decisions import SglangDecisions
from llmsim.tests.support.driven_core import VLLM, DrivenCore, core_of, request_of

Line = dict[str, Any]
SGLANG = VLLM | {"preemption": {"name": "fewest_outputs"}}


def request(name: str, step: int, prompt: int, output: int, **more: Any) -> Line:
    """A request whose prompt is like no other's."""
    tokens = [1000 * sum(name.encode()) + i for i in range(prompt)]
    return {"id": name, "arrival_step": step, "prompt_token_ids": tokens, "output_len": output, "priority": 0} | more


def log(requests: list[Line], **config: Any) -> Iterator[Line]:
    """The decisions on a case."""
    return SglangDecisions({"config": config, "requests": requests}).log()


STARVED = {"max_total_tokens": 70, "chunked_prefill_size": 4, "schedule_conservativeness": 0.0}


def test_the_last_request_without_memory_is_aborted_and_enters_nothing() -> None:
    requests = [request("talker", 0, 4, 60), request("reader", 6, 40, 1)]
    lines = list(log(requests, prefill_decode_interval=8, **STARVED))
    at = next(i for i, line in enumerate(lines) if line["aborted"])
    assert lines[at]["aborted"] == ["talker"]
    assert lines[at]["evictable"] == 4, "the prompt alone is left in the tree"
    assert [line["finished"] for line in lines if line["finished"]] == [["reader"]]


def test_a_ratio_below_the_least_rises_to_it_with_the_next_decode() -> None:
    ratio = NewTokenRatio(1.0)
    ratio.after_retraction([(1, 4000)])
    assert ratio.value == 21 / 4001
    ratio.decay()
    assert ratio.value == pytest.approx(0.7 * 0.14)


def test_a_chunk_that_goes_on_without_memory_ends_the_run_with_a_line() -> None:
    requests = [request("a", 0, 4, 30), request("b", 0, 4, 30), request("reader", 1, 30, 1)]
    lines = log(requests, page_size=4, prefill_decode_interval=1, **STARVED | {"max_total_tokens": 56})
    with pytest.raises(ValueError, match=r"step 18: the prompt of reader goes on, but 4 tokens .* needed and 0 free"):
        list(lines)


def test_only_one_prompt_is_cut_in_a_step() -> None:
    requests = [request("a", 0, 20, 2), request("b", 0, 20, 2, ignore_eos=True)]
    config = {"max_total_tokens": 400, "page_size": 4, "chunked_prefill_size": 10, "disable_radix_cache": True}
    lines = list(log(requests, **config))
    assert [line["batch"] for line in lines[:3]] == [{"a": 8}, {"a": 10}, {"a": 2, "b": 6}]
    assert sorted(name for line in lines for name in line["finished"]) == ["a", "b"]


def test_decodes_sit_out_a_mixed_step_that_leaves_them_no_memory() -> None:
    short = [request(f"r{i}", 0, 4, 8) for i in range(8)]
    config = {"max_total_tokens": 136, "page_size": 4, "schedule_conservativeness": 0.0, "enable_mixed_chunk": True}
    lines = list(log([*short, request("long", 5, 50, 2)], **config))
    assert [line["mode"] for line in lines[4:7]] == ["decode", "prefill", "decode"]
    assert list(lines[6]["batch"]) == [f"r{i}" for i in range(8)]


def test_all_that_can_go_is_evicted_before_decodes_sit_out() -> None:
    short = [request("gone", 0, 4, 1), *(request(f"r{i}", 0, 4, 8) for i in range(8))]
    config = {"max_total_tokens": 140, "page_size": 4, "schedule_conservativeness": 0.0, "enable_mixed_chunk": True}
    lines = list(log([*short, request("long", 5, 50, 2)], **config))
    assert [line["mode"] for line in lines[4:7]] == ["decode", "prefill", "decode"]
    assert [(line["evictable"], line["evicted_tokens"]) for line in lines[4:6]] == [(4, 0), (0, 4)]


def test_who_makes_way_goes_in_the_order_of_running() -> None:
    requests = [request("a", 0, 10, 20, priority=11), request("b", 0, 10, 20), request("urgent", 3, 60, 5, priority=30)]
    config = {"max_total_tokens": 100, "max_running_requests": 2, "enable_priority_scheduling": True}
    assert [line["retracted"] for line in log(requests, **config) if line["retracted"]] == [["a", "b"]]


def test_nothing_is_mixed_where_nothing_is_chunked() -> None:
    requests = [request("a", 0, 4, 8), request("b", 2, 4, 2)]
    lines = log(requests, chunked_prefill_size=-1, enable_mixed_chunk=True)
    assert [line["mode"] for line in lines][:4] == ["prefill", "decode", "prefill", "decode"]


@pytest.mark.parametrize("low_first", [False, True])
def test_eviction_by_priority_takes_low_values_first_whatever_is_urgent(low_first: bool) -> None:
    requests = [
        request("high", 0, 20, 1, priority=5),
        request("low", 2, 20, 1, priority=1),
        request("next", 4, 20, 1, priority=3),
        request("again", 6, 21, 1, priority=3, prompt_token_ids=request("high", 0, 20, 1)["prompt_token_ids"] + [1]),
    ]
    config = {"radix_eviction_policy": "priority", "schedule_low_priority_values_first": low_first}
    lines = list(log(requests, max_total_tokens=50, enable_priority_scheduling=True, **config))
    assert [line["prefix"]["again"] for line in lines if "again" in line["prefix"]] == [20]


def test_the_longest_output_goes_first_among_the_most_urgent() -> None:
    requests = [request("a", 0, 2, 6), request("b", 1, 2, 2, priority=5), request("c", 1, 2, 9), request("d", 1, 2, 11)]
    lines = log(requests, schedule_policy="lof", enable_priority_scheduling=True, max_running_requests=1)
    assert [name for line in lines for name in line["finished"]] == ["a", "b", "d", "c"]


def test_a_request_that_no_admission_would_let_in_is_refused() -> None:
    config = EngineConfig(num_blocks=33, block_size=64, prefix_index="radix_tree", spare_tokens=65)
    policies = {"batching": "prefill_first", "scheduling": "fcfs", "preemption": "fewest_outputs"}
    policies |= {"chunk_size": "unlimited", "eviction": "lru"}
    core = EngineCore(config, Policies.of({kind: {"name": name} for kind, name in policies.items()}))
    too_large, largest = (Request("a", 0, Prompt([(1, 0, prompt)]), 100, 2) for prompt in (1884, 1883))
    assert (
        core.refusal(too_large) == "prompt and max_tokens (1984), and 65 to spare, exceed the 2048 tokens of KV memory"
    )
    core.add_request(largest, 0)
    plan = core.plan_step(0)
    assert plan is not None
    assert [row.num_tokens for row in plan.rows] == [1883]


def test_who_is_retracted_while_its_prefill_is_in_flight_enters_nothing_and_returns() -> None:
    specs = SGLANG | {"batching": {"name": "prefill_first", "conservativeness": 0.0}}
    driven = DrivenCore(core_of(specs, num_blocks=61, block_size=1, prefix_index="radix_tree", depth=2))
    records = [driven.add(request_of(f"a{number}", 2, 14), 0) for number in range(6)]
    for _ in range(5):
        driven.step(0)
    records.append(driven.add(request_of("b", 24, 2), 0))
    sequence = driven.core.sequences["b"]
    was_in_flight = False
    while driven.is_busy:
        driven.plan(0)
        retracted = sequence.state is State.PREEMPTED
        was_in_flight |= retracted and any(row.sequence is sequence for row in driven.pipe[0].plan.rows)
        if len(driven.pipe) == 2 or not driven.core.running:
            driven.commit(0)
        driven.core.check_integrity()
        assert sequence.state is not State.PREEMPTED or sequence.node is None
    assert was_in_flight
    assert [record.output_tokens for record in records] == [14] * 6 + [2]
