from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from llmsim.kernels.torch_backend import TorchKernels
from llmsim.real_engine.model.loading import load_model
from llmsim.real_engine.model.transformer import Transformer
from llmsim.tests.support.hf_models import LLAMA3_ROPE, greedy, logits_of, random_model, saved
from llmsim.tests.support.paged_generation import PagedGeneration

CPU = torch.device("cpu")
NUM_OUTPUTS = 12

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama, llama3 rope, three heads a KV head, tied": (
        "llama",
        {"rope_parameters": LLAMA3_ROPE, "tie_word_embeddings": True},
    ),
    "llama, every head its own KV head, biases": (
        "llama",
        {"num_attention_heads": 3, "num_key_value_heads": 3, "attention_bias": True},
    ),
    "llama, linear rope": ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}}),
    "mistral": ("mistral", {"sliding_window": None, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "qwen2, biases of Q, K and V": ("qwen2", {}),
    "qwen3, normed Q and K": ("qwen3", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "qwen3, tied": ("qwen3", {"tie_word_embeddings": True, "num_attention_heads": 4, "num_key_value_heads": 1}),
}


def prompts(*lengths: int, vocab_size: int = 199) -> list[list[int]]:
    draw = random.Random(7)
    return [[draw.randrange(vocab_size) for _ in range(length)] for length in lengths]


def ours(folder: Path, dtype: torch.dtype = torch.float32) -> Transformer:
    return load_model(folder, device=CPU, dtype=dtype, seed=0, kernels=TorchKernels())


@pytest.mark.parametrize("name", MODELS)
def test_greedy_tokens_are_those_of_transformers_in_any_company(name: str, tmp_path: Path) -> None:
    family, fields = MODELS[name]
    theirs = random_model(family, **fields)
    model = ours(saved(theirs, tmp_path))
    asked = prompts(70, 37, 5, 1)
    expected = [greedy(theirs, prompt, NUM_OUTPUTS) for prompt in asked]
    for seed in range(2):
        generation = PagedGeneration(model, seed=seed)
        sequences = [generation.add(prompt) for prompt in asked]
        generation.run(NUM_OUTPUTS)
        assert [s.tokens[-NUM_OUTPUTS:] for s in sequences] == expected


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Transformer:
    return ours(saved(random_model("qwen3"), tmp_path_factory.mktemp("qwen3")))


def test_a_prefix_hit_changes_no_token(qwen3: Transformer) -> None:
    (start,), ends = prompts(40), prompts(9, 3, 17)
    apart = PagedGeneration(qwen3, seed=1)
    alone = [apart.add(start + end) for end in ends]
    apart.run(NUM_OUTPUTS)
    together = PagedGeneration(qwen3, seed=2)
    first = together.add(start + ends[0])
    together.step([], [(first, 35)])
    hitting = [first, *(together.add(start + end) for end in ends[1:])]
    for sequence in hitting[1:]:
        together.share(first, sequence, num_blocks=2)
    together.run(NUM_OUTPUTS)
    assert [s.tokens for s in hitting] == [s.tokens for s in alone]
    assert {block for s in hitting for block in s.blocks[:2]} == set(first.blocks[:2])


def test_the_next_turn_goes_on_in_the_blocks_of_the_one_before(qwen3: Transformer) -> None:
    asked, follow_up = prompts(21, 6)
    generation = PagedGeneration(qwen3, seed=3)
    first = generation.add(asked)
    generation.run(NUM_OUTPUTS)
    second = generation.add([*first.tokens, *follow_up])
    generation.share(first, second, num_blocks=2)
    generation.run(NUM_OUTPUTS)
    apart = PagedGeneration(qwen3, seed=4)
    whole = apart.add([*first.tokens, *follow_up])
    apart.run(NUM_OUTPUTS)
    assert second.tokens == whole.tokens


def test_any_block_size_gives_the_same_tokens(qwen3: Transformer) -> None:
    (prompt,) = prompts(50)
    tokens = set()
    for block_size in (1, 16, 64):
        generation = PagedGeneration(qwen3, seed=5, block_size=block_size, num_blocks=1 + 128 // block_size)
        sequence = generation.add(prompt)
        generation.run(NUM_OUTPUTS, max_chunk=20)
        tokens.add(tuple(sequence.tokens))
    assert len(tokens) == 1


def test_padded_decodes_write_nothing(qwen3: Transformer) -> None:
    (prompt,) = prompts(4)
    generation = PagedGeneration(qwen3, seed=6, num_blocks=3)
    sequence = generation.add(prompt)
    generation.step([], [(sequence, 4)])
    generation.step([sequence], [], num_padding=5)
    for cache in (*generation.kv.k, *generation.kv.v):
        written = {tuple(place) for place in (~cache.isnan()).any(1).any(-1).nonzero().tolist()}
        assert written == {(sequence.blocks[0], offset) for offset in range(5)}


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_bf16_is_as_close_to_fp32_as_that_of_transformers(family: str, tmp_path: Path) -> None:
    theirs = random_model(family)
    model = ours(saved(theirs, tmp_path), torch.bfloat16)
    prompt, forced = prompts(60, 40)
    exact = logits_of(theirs, prompt + forced[:-1], len(forced))
    their_error = (logits_of(theirs.to(torch.bfloat16), prompt + forced[:-1], len(forced)) - exact).abs()
    generation = PagedGeneration(model, seed=0)
    sequence = generation.add(prompt, forced=forced)
    generation.run(len(forced), max_chunk=25)
    logits = torch.stack(sequence.logits)
    assert (logits - exact).abs().mean() <= 1.25 * their_error.mean()
    best_two = exact.topk(2).values
    clear = best_two[:, 0] - best_two[:, 1] > 2 * their_error.max()
    assert clear.sum() >= 5
    assert torch.equal(logits.argmax(-1)[clear], exact.argmax(-1)[clear])
