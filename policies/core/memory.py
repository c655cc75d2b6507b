"""The memory budget: weights + KV + activations + runtime buffers <= utilisation x memory, in KV blocks.

Activations are the most that a run at full load holds at once, which is what vLLM's profiling run measures:
the widest layer at `max_num_batched_tokens`, or sampling at `max_num_seqs` rows, whichever is larger.
"""

from __future__ import annotations

from dataclasses import dataclass

from .gpu_spec import GpuSpec
from .model_spec import ModelSpec
from .specs import GIB

SAMPLER_BYTES_PER_LOGIT = 2 + 4 + (4 + 8) + 4 + 1 + 4
"""Top-k and top-p sampling by a full sort, in torch: the logits (bf16, then fp32), the sorted ones with int64
indices, their probabilities, a mask, and the result in the old order."""

NON_TORCH_BYTES = round(0.16 * GIB)
"""What CUDA and libraries allocate beside torch: 0.16 GiB on an H100 (log in vLLM PR #12126)."""

MIN_BLOCKS = 2
"""The null block, which is never handed out, and one to use."""


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """How one GPU's memory is used."""

    weights_bytes: int
    kv_bytes: int
    """`num_blocks` whole blocks."""
    activations_bytes: int
    buffers_bytes: int
    budget_bytes: int
    """gpu_memory_utilization x memory."""
    memory_bytes: int
    kv_bytes_per_token: int
    block_size: int
    """Tokens a block."""
    num_blocks: int
    """Those that are never handed out included."""
    num_null_blocks: int = 1
    """Of them never handed out: vLLM's null block."""

    def blocks_per_request(self, tokens: int) -> int:
        """Blocks that a request of that many tokens takes."""
        return -(-tokens // self.block_size)

    def max_concurrency(self, tokens: int) -> float:
        """Requests of that many tokens that the pool holds, as vLLM prints it (a null block counts)."""
        return self.num_blocks / self.blocks_per_request(tokens)


class DoesNotFit(ValueError):
    """The model leaves no room for KV, or for as much of it as was asked for."""

    def __init__(self, message: str, budget: MemoryBudget) -> None:
        super().__init__(message)
        self.budget = budget
        """What would be needed, with the least KV or as much as was asked for."""


def memory_budget(
    model: ModelSpec,
    gpu: GpuSpec,
    *,
    tensor_parallel: int,
    gpu_memory_utilization: float,
    max_num_batched_tokens: int,
    max_num_seqs: int,
    block_size: int,
    kv_dtype_bytes: int | None = None,
    num_blocks: int | None = None,
) -> MemoryBudget:
    """The budget of each GPU. `num_blocks` pins the pool; else what is left over is KV, in whole blocks.

    Raises DoesNotFit where less than a usable block is left, or where the pinned pool exceeds the memory, and
    ValueError where the model does not divide over the GPUs or a number is out of range.
    """
    model.check_tensor_parallel(tensor_parallel)
    if not 0 < gpu_memory_utilization <= 1:
        raise ValueError(f"gpu_memory_utilization is {gpu_memory_utilization}; it must be above 0, at most 1")
    if min(max_num_batched_tokens, max_num_seqs, block_size, 1 if kv_dtype_bytes is None else kv_dtype_bytes) < 1:
        raise ValueError("max_num_batched_tokens, max_num_seqs, block_size and KV bytes must be at least 1")
    if num_blocks is not None and num_blocks < MIN_BLOCKS:
        raise ValueError(f"num_blocks is {num_blocks}; it must be at least {MIN_BLOCKS}, the null block included")
    weights = model.weight_bytes(tensor_parallel)
    activations = activation_bytes(model, tensor_parallel, max_num_batched_tokens, max_num_seqs)
    buffers = buffer_bytes(model)
    budget = int(gpu_memory_utilization * gpu.memory_bytes)
    block_bytes = model.kv_bytes_per_token(tensor_parallel, kv_dtype_bytes) * block_size
    limit = budget if num_blocks is None else gpu.memory_bytes  # a pinned pool overrides the utilisation
    available = limit - weights - activations - buffers
    blocks = num_blocks or max(MIN_BLOCKS, available // block_bytes)
    found = MemoryBudget(
        weights_bytes=weights,
        kv_bytes=blocks * block_bytes,
        activations_bytes=activations,
        buffers_bytes=buffers,
        budget_bytes=budget,
        memory_bytes=gpu.memory_bytes,
        kv_bytes_per_token=block_bytes // block_size,
        block_size=block_size,
        num_blocks=blocks,
    )
    if found.kv_bytes > available:
        share = f" ({gpu_memory_utilization:g} of {gib(gpu.memory_bytes)})" if num_blocks is None else ""
        raise DoesNotFit(
            f"{model.name} does not fit {gpu.name} with tensor_parallel {tensor_parallel}:"
            f" weights {gib(weights)} + activations {gib(activations)} + buffers {gib(buffers)}"
            f" + KV {gib(found.kv_bytes)} ({blocks:,} blocks)"
            f" exceed {gib(limit)}{share}",
            found,
        )
    return found


def concurrency_note(budget: MemoryBudget, wanted_concurrency: int, tokens_per_request: int) -> str | None:
    """A sentence where the weights fit but fewer requests than wanted do; None where all do."""
    fitting = (budget.num_blocks - budget.num_null_blocks) // budget.blocks_per_request(tokens_per_request)
    if fitting >= wanted_concurrency:
        return None
    return (
        f"the weights fit, but only {fitting:,} of {wanted_concurrency:,} concurrent requests"
        f" of {tokens_per_request:,} tokens do"
    )


def activation_bytes(model: ModelSpec, tensor_parallel: int, max_num_batched_tokens: int, max_num_seqs: int) -> int:
    """Peak activations on each GPU: the widest layer, or sampling (whose rows hold the whole vocabulary)."""
    attention = model.qkv_width(tensor_parallel) + model.heads_per_gpu(tensor_parallel) * model.head_dim
    mlp = (
        3 * model.intermediate_size // tensor_parallel * max(model.experts_per_token, 1)
    )  # gate and up, and their product
    layer = max_num_batched_tokens * (2 * model.hidden_size + max(attention, mlp)) * model.activation_bytes
    rows = min(max_num_seqs, max_num_batched_tokens)
    hidden = max_num_batched_tokens * model.hidden_size * model.activation_bytes
    return max(layer, hidden + rows * model.vocab_size * SAMPLER_BYTES_PER_LOGIT)


def buffer_bytes(model: ModelSpec) -> int:
    """Runtime buffers on each GPU: the table of rotary sines and cosines, and what torch did not allocate."""
    return model.max_position_embeddings * model.head_dim * model.activation_bytes + NON_TORCH_BYTES


def gib(num_bytes: int) -> str:
    """Bytes as a person reads them."""
    return f"{num_bytes / GIB:.2f} GiB"
