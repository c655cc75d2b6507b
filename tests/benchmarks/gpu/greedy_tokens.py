"""Greedy tokens of the engine on the device against transformers', in fp32, with everything in play."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from llmsim.kernels.contract import Kernels
from llmsim.tests.benchmarks.gpu.checks import Check
from llmsim.tests.support.driven_core import VLLM
from llmsim.tests.support.hugging_face import HuggingFaceModel
from llmsim.tests.support.real_engine_run import RealRun, model_on
from llmsim.tests.support.small_traffic import requests_of

PART = "greedy tokens"
CHUNKS = VLLM | {"chunk_size": {"name": "fixed", "tokens": 7}}
SWAP = CHUNKS | {"preemption": {"name": "newest", "mode": "swap"}}


def greedy_tokens(kernels: Kernels, device: torch.device, folder: Path) -> Iterator[Check]:
    """Share of requests whose tokens are all equal; chunks, prefix hits, preemptions, swaps, steps in flight."""
    for family in ("llama", "qwen3"):
        reference = HuggingFaceModel(family, folder / family)
        model = model_on(device, reference.folder, kernels)
        for name, specs, num_host_blocks in (("recompute", CHUNKS, 0), ("swap", SWAP, 40)):
            arrivals = requests_of(0)
            run = RealRun(
                model,
                specs,
                num_blocks=9,
                block_size=16,
                num_host_blocks=num_host_blocks,
                max_num_seqs=8,
                max_num_batched_tokens=24,
                max_model_len=64,
                depth=2,
            )
            got = run.serve(arrivals)
            requests = [request for pairs in arrivals.values() for request, _ in pairs]
            want = {r.id: reference.generate([*r.prompt.contents[0]], r.max_tokens) for r in requests}  # type: ignore[misc]
            equal = sum(got[key] == want[key] for key in want)
            note = f"{run.num_preemptions} preemptions, {run.num_cached_tokens} cached tokens, {run.num_swaps} swaps"
            yield Check(PART, f"{family}, {name}: requests equal", equal / len(want), 1.0, note=note)
            run.executor.close()
