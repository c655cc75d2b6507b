"""Drawn tokens: the Triton kernel draws what the torch reference draws, whatever stands in the batch."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from types import ModuleType

import pytest
import torch
from torch import Tensor

from llmsim.kernels.reference import sampling as reference
from llmsim.kernels.sampling import draw, greedy
from llmsim.kernels.sampling.candidates import candidates_of
from llmsim.tests.support.kernel_checks import DEVICE, DTYPES, INTERPRETED, normal

BACKENDS = pytest.mark.parametrize("module", [draw, reference], ids=["triton", "torch"])
replaceable = pytest.mark.skipif(not INTERPRETED, reason="a compiled kernel calls what it was compiled with")


@dataclass(frozen=True)
class Asked:
    """What rows ask for, as the contract orders it after the logits."""

    temperatures: Tensor
    top_ks: Tensor
    top_ps: Tensor
    seeds: Tensor
    positions: Tensor

    def of(self, rows: Tensor) -> Asked:
        """What some of the rows ask for."""
        return Asked(*(values[rows].contiguous() for values in astuple(self)))


def asked(rows: int, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, seed: int = 0) -> Asked:
    """The same for all rows, but that each has its own position."""
    return Asked(
        torch.full((rows,), temperature, device=DEVICE),
        torch.full((rows,), top_k, device=DEVICE, dtype=torch.int32),
        torch.full((rows,), top_p, device=DEVICE),
        torch.full((rows,), seed, device=DEVICE),
        torch.arange(rows, device=DEVICE),
    )


def mixed(rows: int, seed: int) -> Asked:
    """Temperatures, top-k and top-p at random, each switched off in every third row or so, and any seed."""
    generator = torch.Generator().manual_seed(seed)
    kept = torch.rand(3, rows, generator=generator) > 0.3
    found = Asked(
        torch.rand(rows, generator=generator) * 2 * kept[0],
        (torch.randint(1, 40, (rows,), generator=generator) * kept[1]).int(),
        torch.where(kept[2], torch.rand(rows, generator=generator), 1.0),
        torch.randint(-(2**63), 2**63 - 1, (rows,), generator=generator),
        torch.randint(0, 2**40, (rows,), generator=generator),
    )
    return Asked(*(values.to(DEVICE) for values in astuple(found)))


def sample(module: ModuleType, logits: Tensor, what: Asked) -> Tensor:
    return module.sample(logits, *astuple(what))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_both_backends_draw_the_same_tokens(dtype: torch.dtype) -> None:
    for rows, vocab, scale in [
        (0, 50, 1),
        (1, 1, 1),
        (3, 2, 1),
        (8, 60, 0.2),
        (8, 100, 3),
        (5, 8193, 3),
        (2, 20_001, 3),
    ]:
        logits, what = normal(rows, vocab, dtype=dtype, seed=vocab, scale=scale), mixed(rows, seed=vocab)
        assert torch.equal(sample(draw, logits, what), sample(reference, logits, what))


def test_a_vocabulary_of_128k_is_drawn_from() -> None:
    logits, what = normal(1, 128_256, dtype=torch.bfloat16, scale=3.0), asked(1, top_k=50, top_p=0.9)
    assert torch.equal(sample(draw, logits, what), sample(reference, logits, what))


def test_rows_too_flat_for_candidates_are_searched_whole() -> None:
    logits = normal(3, 9000, dtype=torch.float32, scale=0.04)
    what = Asked(
        torch.full((3,), 0.7, device=DEVICE),
        torch.tensor([0, 6000, 5000], device=DEVICE, dtype=torch.int32),
        torch.tensor([0.5, 0.3, 1.0], device=DEVICE),
        *astuple(asked(3))[3:],
    )
    found = candidates_of(logits, greedy.chunk_maxima(logits)[0], *astuple(what)[:3]).found
    assert found.max() < 4500  # so that half of all weight, and 5,000 tokens, are not among them
    assert torch.equal(sample(draw, logits, what), sample(reference, logits, what))


@replaceable
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_search_of_the_whole_row_finds_what_candidates_tell(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
) -> None:
    monkeypatch.setattr(draw, "_drawn_from_candidates", lambda *arguments: -1)
    # Of nearly equal weights: one kept too many would move all places.
    for what in (asked(6, 1.5, top_k=7), asked(3, 1.5, top_p=0.4), asked(3, 1.0, top_k=20, top_p=0.7)):
        logits = normal(len(what.seeds), 60, dtype=dtype, scale=0.2)
        assert torch.equal(sample(draw, logits, what), sample(reference, logits, what))


@replaceable
def test_rows_as_models_give_them_are_decided_among_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object) -> None:
        raise AssertionError("the whole row is searched")

    monkeypatch.setattr(draw, "drawn_from_whole_row", refused)
    logits = normal(4, 9000, dtype=torch.float32, scale=3.0)
    top_ks = torch.tensor([50, 0, 20, 0], dtype=torch.int32)
    what = Asked(torch.full((4,), 0.7), top_ks, torch.tensor([1.0, 0.9, 0.8, 0.5]), *astuple(asked(4))[3:])
    assert torch.equal(sample(draw, logits, what), sample(reference, logits, what))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_candidates_are_the_likeliest_tokens_in_the_order_of_the_vocabulary(dtype: torch.dtype) -> None:
    logits, what = normal(2, 10_000, dtype=dtype, scale=3.0), asked(2, top_k=5)
    candidates = candidates_of(logits, greedy.chunk_maxima(logits)[0], *astuple(what)[:3])
    for row in range(2):
        count = int(candidates.found[row])
        tokens = candidates.tokens[row, :count].long()
        assert 3000 < count <= 4096
        assert bool((tokens.diff() > 0).all())
        assert torch.equal(logits[row, tokens].float(), candidates.logits[row, :count])
        others = torch.ones(10_000, dtype=torch.bool, device=DEVICE).index_fill_(0, tokens, False)
        assert candidates.logits[row, :count].min() > logits[row, others].max()


@BACKENDS
def test_order_and_company_in_the_batch_change_nothing(module: ModuleType) -> None:
    logits, what = normal(9, 300, dtype=torch.float32, scale=2.0), mixed(9, seed=7)
    together = sample(module, logits, what)
    order = torch.tensor([4, 8, 0, 3, 7, 1, 2, 6, 5], device=DEVICE)
    assert torch.equal(sample(module, logits[order], what.of(order)), together[order])
    assert torch.equal(sample(module, logits[2:3], what.of(order[6:7])), together[2:3])


@BACKENDS
def test_what_leaves_one_token_is_greedy(module: ModuleType) -> None:
    logits = normal(3, 500, dtype=torch.float32, scale=2.0)
    for only in (asked(3, temperature=0.0), asked(3, top_k=1), asked(3, top_p=1e-9), asked(3, temperature=1e-6)):
        assert torch.equal(sample(module, logits, only), logits.argmax(-1))


@BACKENDS
def test_equals_of_the_last_one_kept_are_kept_too(module: ModuleType) -> None:
    row = torch.tensor([1.0, 3.0, 2.0, 2.0, -1.0, 2.0, 0.0], device=DEVICE)
    logits = row.expand(14, -1)
    assert set(sample(module, logits, asked(14, 10.0, top_k=2)).tolist()) == {1, 2, 3, 5}
    # At a temperature of 10 the first has 0.17 and with one of its seconds 0.32: a share of 0.25 needs one, takes all.
    assert set(sample(module, logits, asked(14, 10.0, top_p=0.25)).tolist()) == {1, 2, 3, 5}


@BACKENDS
def test_minus_zero_equals_zero(module: ModuleType) -> None:
    logits = torch.tensor([-1.0, 0.0, -0.0, -2.0], device=DEVICE).expand(12, -1)
    assert set(sample(module, logits, asked(12, top_k=1)).tolist()) == {1, 2}


@BACKENDS
def test_hopeless_rows_give_some_token_and_spoil_no_other(module: ModuleType) -> None:
    logits, what = normal(6, 40, dtype=torch.float32), mixed(6, seed=3)
    what = Asked(what.temperatures + 0.5, *astuple(what)[1:])
    untouched = sample(module, logits, what)
    logits[0], logits[1] = float("nan"), float("-inf")
    logits[2, 5:] = float("nan")
    logits[3, 7] = float("inf")
    tokens = sample(module, logits, what)
    assert torch.equal(tokens[4:], untouched[4:])
    assert bool(((tokens >= 0) & (tokens < 40)).all())
    assert tokens[2] < 5
    assert tokens[3] == 7
