"""What the engine generates is what the model generates alone, whatever the scheduler does with its requests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from llmsim.policies.core.request import Output, Prompt, Request
from llmsim.policies.core.sequence import Sequence
from llmsim.real_engine.contract import StepFailed
from llmsim.real_engine.model.transformer import Transformer
from llmsim.tests.support.driven_core import BY_PRIORITY, VLLM
from llmsim.tests.support.hugging_face import VOCAB, HuggingFaceModel
from llmsim.tests.support.real_engine_run import RealRun, model_on
from llmsim.tests.support.small_traffic import requests_of

CPU = torch.device("cpu")
SWAP = VLLM | {"preemption": {"name": "newest", "mode": "swap"}}
CHUNKS = VLLM | {"chunk_size": {"name": "fixed", "tokens": 7}}


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def reference(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> HuggingFaceModel:
    return HuggingFaceModel(request.param, tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(reference: HuggingFaceModel) -> Transformer:
    return model_on(CPU, reference.folder)


SGLANG = {
    "batching": {"name": "prefill_first", "chunked_prefill_size": 11, "max_prefill_tokens": 64},
    "scheduling": {"name": "lpm"},
    "preemption": {"name": "fewest_outputs"},
    "chunk_size": {"name": "unlimited"},
    "eviction": {"name": "lru"},
}
HOPEFUL = SGLANG | {"batching": SGLANG["batching"] | {"conservativeness": 0.0}}
RADIX = {"prefix_index": "radix_tree", "max_num_batched_tokens": 64}


PREEMPTED = ("preempted", "by priority", "swapped")
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "roomy": (VLLM, {"num_blocks": 200, "block_size": 4}),
    "chunks": (CHUNKS, {"num_blocks": 200, "block_size": 4, "max_num_batched_tokens": 16}),
    "no cache": (CHUNKS, {"num_blocks": 60, "block_size": 4, "enable_prefix_caching": False}),
    "preempted": (
        CHUNKS,
        {"num_blocks": 22, "block_size": 4, "reserve_full_prompt": False},
    ),
    "by priority": (BY_PRIORITY, {"num_blocks": 20, "block_size": 4, "max_num_batched_tokens": 24}),
    "swapped": (SWAP, {"num_blocks": 20, "block_size": 4, "max_num_batched_tokens": 24, "num_host_blocks": 40}),
    "radix tree": (SGLANG, RADIX | {"num_blocks": 400, "block_size": 1}),
    "radix tree of pages": (SGLANG, RADIX | {"num_blocks": 25, "block_size": 4, "asks_generously": True}),
    "static": (VLLM | {"batching": {"name": "static"}}, {"num_blocks": 200, "block_size": 16}),
}


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_tokens_are_those_of_the_model_alone(
    reference: HuggingFaceModel, model: Transformer, case: str, depth: int
) -> None:
    specs, limits = CASES[case]
    for seed in range(3):
        arrivals = requests_of(seed)
        run = RealRun(model, specs, **({"max_num_seqs": 8, "max_model_len": 64} | limits), depth=depth)
        got = run.serve(arrivals)
        for request, output in (pair for pairs in arrivals.values() for pair in pairs):
            prompt = list(request.prompt.contents[0])
            assert got[request.id] == reference.generate(prompt, output.length), (seed, request.id)
        assert (run.num_preemptions > 0) == (case in PREEMPTED), run.num_preemptions
        assert (run.num_swaps > 0) == (case == "swapped")
        assert (run.num_cached_tokens > 0) == (case != "no cache")


WARM_CASES = ("roomy", "preempted", "swapped", "radix tree", "radix tree of pages")


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("case", WARM_CASES)
def test_tokens_stay_those_of_the_model_alone_where_the_cache_is_that_of_a_pass_before(
    reference: HuggingFaceModel, model: Transformer, case: str, depth: int
) -> None:
    specs, limits = CASES[case]
    arrivals = requests_of(0)
    run = RealRun(model, specs, **({"max_num_seqs": 8, "max_model_len": 64} | limits), depth=depth)
    run.serve(arrivals)
    num_hit_before = run.num_cached_tokens
    run.begin_anew()
    got = run.serve(arrivals)
    for request, output in (pair for pairs in arrivals.values() for pair in pairs):
        assert got[request.id] == reference.generate(list(request.prompt.contents[0]), output.length), request.id
    assert run.num_cached_tokens > num_hit_before * (1.5 if limits["num_blocks"] >= 200 else 0)
    assert (run.num_preemptions > 0) == (case in PREEMPTED)


@pytest.mark.parametrize("specs", [VLLM, SGLANG], ids=["hashed blocks", "radix tree"])
def test_a_pass_before_leaves_answers_and_the_turns_after_them(model: Transformer, specs: dict[str, Any]) -> None:
    index = RADIX if specs is SGLANG else {}
    limits = {"num_blocks": 200, "block_size": 4, "max_num_seqs": 8, "max_model_len": 128, "depth": 2} | index
    arrivals = conversation(3, shares=True)
    run = RealRun(model, specs, **limits)
    cold = dict(run.serve(arrivals))
    run.begin_anew()
    assert run.serve(arrivals) == cold == RealRun(model, **limits, enable_prefix_caching=False).serve(arrivals)
    hits = {a.sequence.id: a.num_cached_tokens for plan in run.plans for a in plan.admitted}
    lengths = {r.id: len(r.prompt) for pairs in arrivals.values() for r, _ in pairs}
    assert hits == {key: (length - 1) // 4 * 4 for key, length in lengths.items()}


def test_an_answer_that_differs_from_the_pass_before_is_told_and_not_mixed_with_it(model: Transformer) -> None:
    run = RealRun(model, num_blocks=50, max_num_seqs=4, max_model_len=64)
    request = Request("r", 0, Prompt.of_tokens([3, 1, 4, 1, 5]), 9, -1)
    said = run.serve({0: [(request, Output(9))]})["r"]
    run.begin_anew()
    run.executor._contents._learnt[-1][4] += 1  # as if it had been said otherwise
    with pytest.raises(
        StepFailed, match="step 4: token 5 of r is not that of the pass before: the cache holds another"
    ):
        run.serve({0: [(request, Output(9))]})
    assert run.tokens["r"] == said[:4]


@pytest.mark.parametrize("page_size", [1, 4])
def test_tokens_survive_a_retraction(reference: HuggingFaceModel, model: Transformer, page_size: int) -> None:
    prompts = [[(7 * i + 3 * j) % VOCAB for j in range(6 + i)] for i in range(6)]
    limits = RADIX | {"num_blocks": 72 // page_size, "block_size": page_size, "max_num_seqs": 8, "max_model_len": 64}
    run = RealRun(model, HOPEFUL, **limits)
    got = run.serve(
        {0: [(Request(f"r{i}", 0, Prompt.of_tokens(p), 30, -1 - i), Output(30)) for i, p in enumerate(prompts)]}
    )
    assert run.num_preemptions > 0
    assert [got[f"r{i}"] for i in range(6)] == [reference.generate(prompt, 30) for prompt in prompts]


def test_blocks_in_the_index_that_were_never_computed_are_when_they_are_hit(
    reference: HuggingFaceModel, model: Transformer
) -> None:
    """`a` is given blocks for 6 tokens, gives way to `b` in the same step, and finds them when it comes back."""
    specs = BY_PRIORITY | {"chunk_size": {"name": "threshold", "tokens": 6}}
    limits = {"num_blocks": 18, "block_size": 2, "max_num_batched_tokens": 14, "max_num_seqs": 4, "max_model_len": 64}
    run = RealRun(model, specs, **limits, reserve_full_prompt=False)
    prompts = {"a": [(7 * i) % VOCAB for i in range(30)], "b": [5, 3, 9]}
    a = Request("a", 0, Prompt.of_tokens(prompts["a"]), 2, -1, priority=5)
    b = Request("b", 0, Prompt.of_tokens(prompts["b"]), 3, -2, priority=0)
    got = run.serve({0: [(a, Output(2))], 1: [(b, Output(3))]})
    assert any(plan.hollow for plan in run.plans)
    assert got == {"a": reference.generate(prompts["a"], 2), "b": reference.generate(prompts["b"], 3)}


def conversation(turns: int, *, shares: bool) -> dict[int, list[tuple[Request, Output]]]:
    """Two sessions whose prompts hold the answers before, as content; each turn comes when the one before has ended."""
    arrivals: dict[int, list[tuple[Request, Output]]] = {}
    for session in range(2):
        spans = [(0 if shares else session, 0, 21)]
        for turn in range(turns):
            spans.append((100 + 10 * session + turn, 0, 5))
            output = -(100 * session + turn + 1)
            arrivals.setdefault(40 * turn, []).append(
                (Request(f"s{session}.{turn}", 0, Prompt(spans), 9, output), Output(9))
            )
            spans.append((output, 0, 9))
    return arrivals


@pytest.mark.parametrize("depth", [1, 2])
def test_a_later_turn_hits_what_was_sampled_before_and_changes_no_token(model: Transformer, depth: int) -> None:
    limits = {"num_blocks": 200, "block_size": 4, "max_num_seqs": 8, "max_model_len": 128, "depth": depth}
    cached, plain = RealRun(model, **limits), RealRun(model, **limits, enable_prefix_caching=False)
    arrivals = conversation(3, shares=True)
    assert cached.serve(arrivals) == plain.serve(arrivals)
    hits = {a.sequence.id: a.num_cached_tokens for plan in cached.plans for a in plan.admitted}
    assert hits["s0.1"] == hits["s1.1"] == (21 + 5 + 9 - 1) // 4 * 4
    assert hits["s1.2"] == (21 + 5 + 9 + 5 + 9 - 1) // 4 * 4
    assert plain.num_cached_tokens == 0


def test_a_turn_may_follow_on_one_that_was_refused(model: Transformer) -> None:
    run = RealRun(model, num_blocks=50, max_num_seqs=4, max_model_len=64)
    refused = Request("long", 0, Prompt([(1, 0, 20)]), 60, -1)
    run.executor.expect(refused, Output(5))
    assert run.core.refusal(refused)
    run.executor.forget("long")
    after = Request("after", 0, Prompt([(1, 0, 20), (-1, 0, 5), (2, 0, 3)]), 4, -2)
    assert len(run.serve({0: [(after, Output(4))]})["after"]) == 4


def test_a_stop_token_ends_a_request(reference: HuggingFaceModel, model: Transformer) -> None:
    prompt = [3, 1, 4, 1, 5]
    alone = reference.generate(prompt, 12)
    stop = alone[5]
    run = RealRun(model, stop_tokens=[stop], num_blocks=50, max_num_seqs=4, max_model_len=64, depth=2)
    request = Request("r", 0, Prompt.of_tokens(prompt), 12, -1)
    assert run.serve({0: [(request, Output(12))]})["r"] == alone[: alone.index(stop) + 1]


@pytest.mark.parametrize("hit_rate", [0.0, 0.6, 1.0])
def test_drafts_are_verified_in_one_pass_and_change_no_token(
    reference: HuggingFaceModel, model: Transformer, hit_rate: float
) -> None:
    arrivals = requests_of(4)
    requests = {request.id: request for pairs in arrivals.values() for request, _ in pairs}
    alone = {key: reference.generate([*r.prompt.contents[0]], r.max_tokens) for key, r in requests.items()}
    draw = random.Random(0)

    def propose(sequence: Sequence, count: int) -> list[int]:
        done = sequence.num_tokens - sequence.prompt_tokens
        right = (alone[sequence.id] + [0] * count)[done : done + count]
        return [token if draw.random() < hit_rate else (token + 1) % VOCAB for token in right]

    limits = {"num_blocks": 30, "block_size": 4, "max_num_seqs": 8, "max_model_len": 128, "reserve_full_prompt": False}
    run = RealRun(model, propose=propose, num_speculative_tokens=3, max_num_batched_tokens=40, **limits)
    assert run.serve(arrivals) == alone
    assert run.num_preemptions > 0
    num_outputs = sum(map(len, alone.values()))
    assert (run.num_accepted > num_outputs / 4) == (hit_rate > 0.5)
    assert (run.num_accepted == 0) == (hit_rate == 0)
