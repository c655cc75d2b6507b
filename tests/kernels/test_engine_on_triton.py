"""The whole engine on the Triton kernels, in the interpreter: chunks, mixed steps, a prefix hit, a preemption."""

from __future__ import annotations

import pytest

from llmsim.kernels.triton_backend import TritonKernels
from llmsim.policies.core.request import Output, Prompt, Request
from llmsim.tests.support.driven_core import VLLM
from llmsim.tests.support.hugging_face import VOCAB, HuggingFaceModel
from llmsim.tests.support.kernel_checks import DEVICE
from llmsim.tests.support.real_engine_run import RealRun, model_on

CHUNKS = VLLM | {"chunk_size": {"name": "fixed", "tokens": 13}}


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_tokens_on_triton_kernels_are_those_of_transformers(
    tmp_path_factory: pytest.TempPathFactory, family: str
) -> None:
    reference = HuggingFaceModel(family, tmp_path_factory.mktemp("model"))
    model = model_on(DEVICE, reference.folder, TritonKernels())
    run = RealRun(model, CHUNKS, num_blocks=6, block_size=16, max_num_seqs=4, max_num_batched_tokens=32, depth=2)
    shared = [(5 * i) % VOCAB for i in range(18)]
    prompts = [[*shared, *((i + 3 * j) % VOCAB for j in range(4 + 6 * i))] for i in range(3)]
    requests = [Request(f"r{i}", 0, Prompt.of_tokens(prompt), 9, -1 - i) for i, prompt in enumerate(prompts)]
    got = run.serve({2 * i: [(request, Output(9))] for i, request in enumerate(requests)})
    assert [got[request.id] for request in requests] == [reference.generate(prompt, 9) for prompt in prompts]
    assert run.num_cached_tokens > 0
    assert run.num_preemptions > 0
