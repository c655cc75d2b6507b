"""Both backends, through the contract: a layer's kernels one after another give the same."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from llmsim.kernels import triton_backend
from llmsim.kernels.contract import Kernels
from llmsim.kernels.torch_backend import TorchKernels
from llmsim.kernels.triton_backend import TritonKernels
from llmsim.tests.support.kernel_checks import DEVICE, fused_heads, normal

HEADS, KV_HEADS, DIM, BLOCK_SIZE = 4, 2, 64, 16
DECODES, CHUNKS = [1, 20], [(5, 5), (3, 19)]  # contexts; (tokens, context) of chunks
BACKENDS = pytest.mark.parametrize("kernels", [TritonKernels(), TorchKernels()], ids=lambda kernels: kernels.name)


def integers(values: list[int], dtype: torch.dtype = torch.int32) -> Tensor:
    return torch.tensor(values, dtype=dtype, device=DEVICE)


def layer(kernels: Kernels) -> Tensor:
    """A mixed step of one layer: two decodes, then two chunks, into scattered blocks."""
    contexts = [*DECODES, *(context for _, context in CHUNKS)]
    lengths = [1, 1, *(tokens for tokens, _ in CHUNKS)]
    places = [
        (row, at) for row, (n, end) in enumerate(zip(lengths, contexts, strict=True)) for at in range(end - n, end)
    ]
    tables = integers([[3, 0], [7, 1], [5, 0], [2, 6]])
    caches = [normal(8, KV_HEADS, BLOCK_SIZE, DIM, dtype=torch.float32, seed=seed) for seed in (1, 2)]
    slots = [int(tables[row, at // BLOCK_SIZE]) * BLOCK_SIZE + at % BLOCK_SIZE for row, at in places]
    _, q, k, v = fused_heads(len(places), HEADS, KV_HEADS, DIM, torch.float32)
    weight = normal(DIM, dtype=torch.float32, seed=3)
    kernels.qk_norm(q, k, weight, weight, 1e-6)
    angles = normal(32, DIM, dtype=torch.float32, seed=4)
    kernels.rope(q, k, integers([at for _, at in places], torch.int64), angles)
    kernels.write_kv(k, v, *caches, integers(slots, torch.int64))
    decoded = kernels.decode_attention(q[:2], *caches, tables, integers([0, 1]), integers(DECODES), 0.125)
    extended = kernels.extend_attention(
        q[2:], *caches, tables, integers([2, 3]), integers([0, 5, 8]), integers([5, 19]), 5, 0.125
    )
    attended = torch.cat((decoded, extended)).flatten(1)
    residual = torch.zeros_like(attended)
    normed = kernels.add_rms_norm(attended, residual, torch.ones_like(attended[0]), 1e-6)
    return kernels.rms_norm(kernels.silu_mul(normed) + residual[:, :128], torch.ones_like(normed[0, :128]), 1e-6)


def test_layers_of_both_backends_agree() -> None:
    exact, result = layer(TorchKernels()), layer(TritonKernels())
    assert (result - exact).abs().max() < 1e-5


@BACKENDS
def test_tokens_come_from_the_contract_too(kernels: Kernels) -> None:
    logits = normal(3, 50, dtype=torch.float32)
    likeliest = kernels.greedy(logits)
    zeros = torch.zeros(3, device=DEVICE)
    drawn = kernels.sample(logits, zeros, zeros.int(), zeros + 1, zeros.long(), zeros.long())
    assert torch.equal(drawn, likeliest)


def test_larger_batches_get_a_workspace_of_their_own_and_smaller_ones_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_backend, "SMALLEST_WORKSPACE", 2)
    kernels = TritonKernels()
    cache, table = normal(2, 1, 16, 64, dtype=torch.float32), integers([[1]])
    for num_sequences in (0, 1, 2, 3, 4, 5):
        q, one = normal(num_sequences, 1, 64, dtype=torch.float32), integers([1] * num_sequences)
        result = kernels.decode_attention(q, cache, cache, table, one * 0, one, 0.125)
        assert (result - cache[1, :, 0]).abs().sum() < 1e-5
    assert [workspace.max_num_sequences for workspace in kernels._workspaces.values()] == [2, 4, 8]
