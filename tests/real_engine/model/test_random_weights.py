from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from llmsim.kernels.torch_backend import TorchKernels
from llmsim.policies.core import specs
from llmsim.policies.core.model_spec import ModelSpec
from llmsim.real_engine.model import random_weights
from llmsim.real_engine.model.loading import load_model
from llmsim.real_engine.model.random_weights import fill_randomly
from llmsim.real_engine.model.weights import Weights, allocate, places
from llmsim.tests.support.paged_generation import PagedGeneration

CPU = torch.device("cpu")
SMALL = replace(specs.model("tiny"), num_layers=2, vocab_size=512, attention_bias=True, qk_norm=True)


def filled(spec: ModelSpec, seed: int, dtype: torch.dtype = torch.float32) -> Weights:
    weights = allocate(spec, dtype, CPU)
    fill_randomly(weights, spec, seed)
    return weights


def equal(first: Weights, second: Weights, spec: ModelSpec) -> list[bool]:
    pairs = zip(places(first, spec), places(second, spec), strict=True)
    return [torch.equal(a.view, b.view) for a, b in pairs if a.view.dim() == 2]


def test_the_seed_makes_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    first = filled(SMALL, seed=1)
    monkeypatch.setattr(random_weights, "CHUNK", 1000)
    assert all(equal(first, filled(SMALL, seed=1), SMALL))
    assert not any(equal(first, filled(SMALL, seed=2), SMALL))


def test_a_tensor_does_not_depend_on_the_model_around_it() -> None:
    fewer = replace(SMALL, num_kv_heads=1, vocab_size=100)
    q = SMALL.num_heads * SMALL.head_dim
    assert torch.equal(filled(SMALL, 1).layers[1].qkv[:q], filled(fewer, 1).layers[1].qkv[:q])


def test_no_two_tensors_are_alike() -> None:
    matrices = [view.flatten()[:10_000] for _, view in places(filled(SMALL, 0), SMALL) if view.dim() == 2]
    correlations = torch.corrcoef(torch.stack(matrices)) - torch.eye(len(matrices))
    assert correlations.abs().max() < 0.06


def test_weights_are_what_the_hash_is_known_to_give() -> None:
    """Values of MurmurHash3's finaliser, reckoned here with Python's integers."""

    def signed(bits: int) -> int:
        return bits - 2**32 if bits >= 2**31 else bits

    def finalised(place: int) -> int:
        bits = place
        bits = (bits ^ bits >> 16) * 0x85EBCA6B % 2**32
        bits = (bits ^ bits >> 13) * 0xC2B2AE35 % 2**32
        return signed(bits ^ bits >> 16)

    hashes = random_weights._hashes(0, 1000, 0, 0, CPU)
    assert hashes.tolist() == [finalised(place) for place in range(1000)]


def test_norms_are_one_and_biases_zero() -> None:
    layer = filled(SMALL, 0).layers[0]
    assert layer.q_norm is not None
    assert layer.qkv_bias is not None
    assert bool((layer.input_norm == 1).all() and (layer.q_norm == 1).all() and (layer.qkv_bias == 0).all())


@pytest.mark.parametrize("num_layers", [2, 40])
def test_hidden_states_and_logits_stay_sane_through_many_layers(num_layers: int) -> None:
    spec = replace(specs.model("tiny"), num_layers=num_layers, max_position_embeddings=512, vocab_size=2048)
    model = load_model(spec, device=CPU, dtype=torch.bfloat16, seed=3, kernels=TorchKernels())
    generation = PagedGeneration(model, seed=0, num_blocks=6)
    sequence = generation.add(range(40))
    generation.step([], [(sequence, 40)])
    for _ in range(7):
        generation.step([sequence], [])
    logits = torch.stack(sequence.logits).float()
    assert 0.5 < logits.std() < 2
    assert len(set(sequence.tokens[40:])) > 2
