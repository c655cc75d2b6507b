"""A whole decode step of an 8B model with CUDA graphs, against the bytes that it must read."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import torch

from llmsim.kernels.contract import Kernels
from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.model_spec import ModelSpec
from llmsim.policies.core.request import Output, Prompt, Request
from llmsim.real_engine.executor import RealExecutor
from llmsim.real_engine.model.loading import load_model
from llmsim.tests.benchmarks.gpu.checks import Check
from llmsim.tests.support.driven_core import VLLM

PART = "decode step"


def decode_steps(
    spec: ModelSpec, kernels: Kernels, device: torch.device, dtype: torch.dtype, copy: float, *, batches: list[int]
) -> Iterator[Check]:
    """Floor (weights and KV over copy bandwidth) / measured, for each batch at a context of about 1,000 tokens."""
    model = load_model(spec, device=device, dtype=dtype, seed=0, kernels=kernels)
    context, steps = (1000, 40) if device.type == "cuda" else (40, 6)
    for batch in batches:
        measured = _median_step_s(model, batch, context, steps)
        looked_up = 0 if spec.tied_embeddings else spec.vocab_size * spec.hidden_size  # a few rows of it are read
        weights = (spec.num_parameters - looked_up) * dtype.itemsize
        kv = batch * context * spec.kv_bytes_per_token(1, dtype.itemsize)
        floor = (weights + kv) / copy
        must, aim = (0.70, 0.85) if device.type == "cuda" else (None, None)
        note = f"{measured * 1e3:.2f} ms, floor {floor * 1e3:.2f} ms"
        title = f"{spec.name}, batch {batch}, context {context}: floor / step"
        yield Check(PART, title, floor / measured, must, aim, note=note)


def _median_step_s(model: object, batch: int, context: int, steps: int) -> float:
    """Device time of a step in which all of a batch decode."""
    blocks = batch * -(-(context + steps + 32) // 16) + 1
    config = EngineConfig(
        num_blocks=blocks,
        max_num_seqs=batch,
        max_num_batched_tokens=max(8192, batch),
        max_model_len=context + steps + 32,
        depth=2,
        enable_prefix_caching=False,
    )
    core = EngineCore(config, Policies.of(VLLM), tells_grants=True)
    executor = RealExecutor(model, config)  # type: ignore[arg-type]
    for i in range(batch):
        request = Request(f"r{i}", 0, Prompt([(i, 0, context)]), steps + 8, -1 - i)
        executor.expect(request, Output(steps + 8))
        core.add_request(request, 0)
    flights, times, now_ns = [], [], 0
    while core.sequences:
        while len(flights) < 2 and (plan := core.plan_step(now_ns)) is not None:
            flights.append((plan, executor.launch(plan)))
        now_ns += 1
        plan, ticket = flights.pop(0)
        done = ticket.wait()
        if plan.num_decodes == batch and not plan.rows:
            times.append(done.cost.device_ns)
        for sequence in core.commit_step(plan, done.result, now_ns).finished:
            executor.forget(sequence.id)
    executor.close()
    return median(times) / 1e9
