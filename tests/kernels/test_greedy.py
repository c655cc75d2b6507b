"""The likeliest token: the Triton kernels and the torch reference."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch

from llmsim.kernels.reference import sampling as reference
from llmsim.kernels.sampling import greedy
from llmsim.tests.support.kernel_checks import DEVICE, DTYPES, TOKEN_COUNTS, normal

BACKENDS = pytest.mark.parametrize("module", [greedy, reference], ids=["triton", "torch"])


@BACKENDS
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_likeliest_token_is_found_in_any_vocabulary(module: ModuleType, dtype: torch.dtype) -> None:
    for rows, vocab in [*((rows, 100) for rows in TOKEN_COUNTS), (3, 1), (2, 8192), (2, 8193), (2, 50_257)]:
        logits = normal(rows, vocab, dtype=dtype)
        expected = [row.index(max(row)) for row in logits.tolist()]
        assert module.greedy(logits).tolist() == expected


@BACKENDS
def test_first_of_equals_is_taken_within_a_chunk_and_across_chunks(module: ModuleType) -> None:
    logits = torch.zeros(4, 20_000, device=DEVICE)
    logits[1, [9000, 40]] = 1.0
    logits[2, [19_999, 17_000]] = 2.0
    logits[3] = -0.0
    logits[3, 5:] = 0.0
    assert module.greedy(logits).tolist() == [0, 40, 17_000, 0]


@BACKENDS
def test_nan_is_the_least_likely(module: ModuleType) -> None:
    logits = torch.full((3, 10_000), float("nan"), device=DEVICE)
    logits[1, 9000] = -5.0
    logits[2, 3:] = float("-inf")
    assert module.greedy(logits).tolist() == [0, 9000, 0]


def test_rows_that_stand_apart_are_found() -> None:
    wide = normal(5, 900, dtype=torch.float32)
    assert torch.equal(greedy.greedy(wide[:, 100:700]), wide[:, 100:700].argmax(-1))
