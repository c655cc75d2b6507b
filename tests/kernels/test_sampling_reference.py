"""The reference of sampling against plain definitions: which tokens are kept, and how often each is drawn."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import chisquare

from llmsim.kernels.reference import sampling as reference
from llmsim.kernels.reference.sampling import dice, draw, kept_weights, sample, token_weights
from llmsim.tests.support.kernel_checks import normal


def plainly_kept(logits: list[float], temperature: float, top_k: int, top_p: float) -> set[int]:
    """By sorting and adding up in float64; what is 2^40 times less likely than the likeliest has no weight."""
    order = sorted(range(len(logits)), key=lambda token: -logits[token])
    if top_k:
        order = [token for token in order if logits[token] >= logits[order[min(top_k, len(order)) - 1]]]
    odds = [math.exp((logits[token] - logits[order[0]]) / temperature) for token in order]
    total, passed, last = sum(odds), 0.0, order[-1]
    for token, odd in zip(order, odds, strict=True):
        passed += odd
        if passed >= top_p * total:
            last = token
            break
    return {token for token, odd in zip(order, odds, strict=True) if logits[token] >= logits[last] and odd > 2.0**-40}


@pytest.mark.parametrize("first_sorted", [3, 20, 1024])
def test_what_is_kept_is_what_sorting_and_adding_up_keeps(monkeypatch: pytest.MonkeyPatch, first_sorted: int) -> None:
    monkeypatch.setattr(reference, "FIRST_SORTED", first_sorted)
    generator = torch.Generator().manual_seed(11)
    for case in range(60):
        logits = normal(1, 50, dtype=torch.bfloat16 if case % 2 else torch.float32, seed=case, scale=2.0).cpu()
        if case % 3 == 0:
            logits = logits.round()
        temperature, top_p = (torch.rand(2, generator=generator) * 0.98 + 0.01).tolist()
        top_k, top_p = case % 7 * 3, 1.0 if case % 5 == 0 else top_p
        weights = kept_weights(
            logits, torch.tensor([temperature]), torch.tensor([top_k], dtype=torch.int32), torch.tensor([top_p])
        )
        kept = set(weights[0].nonzero().flatten().tolist())
        assert kept == plainly_kept(logits[0].tolist(), temperature, top_k, top_p), (case, temperature, top_k, top_p)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_weights_are_the_exponentials_of_fp32_logits(temperature: float) -> None:
    logits = torch.linspace(-30, 4, 20_001).unsqueeze(0)
    weights = token_weights(logits, logits.amax(-1), torch.tensor([temperature]))[0].double()
    exact = ((logits[0].double() - 4.0) / temperature).exp() * 2.0**40
    likely = exact > 2.0**24
    assert ((weights / exact)[likely] - 1).abs().max() < 4e-6
    assert bool(((weights - exact).abs()[~likely] < 64).all())
    assert bool((weights.diff() >= 0).all())


def test_tokens_are_drawn_as_often_as_they_are_likely() -> None:
    draws, vocab = 40_000, 24
    logits = normal(1, vocab, dtype=torch.float32, seed=5).cpu().expand(draws, -1)
    ones, none = torch.ones(draws), torch.zeros(draws, dtype=torch.int32)
    for seeds, positions in (
        (torch.zeros(draws, dtype=torch.int64), torch.arange(draws)),
        (torch.arange(draws), torch.full((draws,), 17)),
    ):
        tokens = sample(logits, ones * 0.8, none, ones, seeds, positions)
        expected = torch.softmax(logits[0].double() / 0.8, -1) * draws
        assert chisquare(torch.bincount(tokens, minlength=vocab).numpy(), expected.numpy()).pvalue > 0.01


def test_consecutive_positions_and_seeds_throw_independent_dice() -> None:
    grid = torch.arange(300)
    thrown = dice(grid.repeat_interleave(300), grid.repeat(300)).view(300, 300)
    sixteenths = thrown >> 28
    for first, second in ((sixteenths[:, :-1], sixteenths[:, 1:]), (sixteenths[:-1], sixteenths[1:])):
        pairs = torch.bincount((first * 16 + second).flatten(), minlength=256)
        assert chisquare(pairs.numpy()).pvalue > 0.01
    assert 0 <= int(thrown.min()) < int(thrown.max()) < 2**32


def test_every_place_of_the_row_belongs_to_its_token() -> None:
    weights = torch.tensor([[0, 2**40, 0, 3 * 2**40, 0]]).expand(4, -1)
    throws = torch.tensor([0, 2**30 - 1, 2**30, 2**32 - 1])
    assert draw(weights, throws).tolist() == [1, 1, 3, 3]
