"""What the engine generates is what the model generates alone, whatever the scheduler does with its requests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from llmsim.policies.core.request import Output, Prompt, Request
from llmsim.real_engine.model.transformer import Transformer
from llmsim.tests.support.driven_core import BY_PRIORITY, VLLM
from llmsim.tests.support.hugging_face import VOCAB, HuggingFaceModel
from llmsim.tests.support.real_engine_run import RealRun, model_on_cpu

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
    return model_on_cpu(reference.folder)


def requests_of(seed: int) -> dict[int, list[tuple[Request, Output]]]:
    """Twelve requests over the first steps; some share a prefix, some prompts are all the same."""
    draw = random.Random(seed)
    shared = [draw.randrange(VOCAB) for _ in range(24)]
    arrivals: dict[int, list[tuple[Request, Output]]] = {}
    for i in range(12):
        own = [draw.randrange(VOCAB) for _ in range(draw.randrange(1, 20))]
        prompt = shared[: draw.choice([0, 8, 17, 24])] + (own if i % 5 else shared[:3])
        max_tokens = draw.randrange(1, 24)
        request = Request(f"r{i}", 0, Prompt.of_tokens(prompt), max_tokens, -1 - i, draw.randrange(3))
        arrivals.setdefault(draw.randrange(12), []).append((request, Output(max_tokens)))
    return arrivals


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
        assert (run.num_preemptions > 0) == (case in ("preempted", "by priority", "swapped")), run.num_preemptions
        assert (run.num_swaps > 0) == (case == "swapped")
        assert (run.num_cached_tokens > 0) == (case != "no cache")


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


def test_a_stop_token_ends_a_request(reference: HuggingFaceModel, model: Transformer) -> None:
    prompt = [3, 1, 4, 1, 5]
    alone = reference.generate(prompt, 12)
    stop = alone[5]
    run = RealRun(model, stop_tokens=[stop], num_blocks=50, max_num_seqs=4, max_model_len=64, depth=2)
    request = Request("r", 0, Prompt.of_tokens(prompt), 12, -1)
    assert run.serve({0: [(request, Output(12))]})["r"] == alone[: alone.index(stop) + 1]
