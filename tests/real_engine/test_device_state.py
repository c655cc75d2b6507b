"""What a device remembers of requests, in the form that kernels take it."""

from __future__ import annotations

import numpy as np
import torch

from llmsim.kernels.torch_backend import TorchKernels
from llmsim.kernels.triton_backend import TritonKernels
from llmsim.policies.core.sequence import Sequence
from llmsim.real_engine.device_state import DeviceState, info_line
from llmsim.real_engine.mirror import Changes
from llmsim.real_engine.sampling_params import SamplingParams
from llmsim.real_engine.upload import Uploader
from llmsim.tests.support.driven_core import core_of, request_of

CPU = torch.device("cpu")


def sequence_of(name: str) -> Sequence:
    core = core_of(num_blocks=10)
    core.add_request(request_of(name, 5, 3), 0)
    return core.sequences[name]


def test_every_backend_draws_the_same_tokens_by_what_is_remembered() -> None:
    """Triton's kernels read from memory without strides: each argument must lie there by itself."""
    params = [SamplingParams(1.0 + 0.1 * i, 20 * (i % 2), 1.0 - 0.1 * (i % 3), seed=1000 + 7 * i) for i in range(4)]
    sequences = [sequence_of(f"r{i}") for i in range(4)]
    state = DeviceState(4, 2, CPU)
    lines = np.array([info_line(*pair) for pair in zip(sequences, params, strict=True)], np.int64)
    state.apply(Changes(new_rows=list(enumerate(sequences, 1))), lines, Uploader(CPU))
    told = state.sampling(torch.arange(1, 5))
    assert all(argument.is_contiguous() for argument in told)
    assert told[3].tolist() == [1000, 1007, 1014, 1021]
    logits = torch.randn(4, 199, generator=torch.Generator().manual_seed(0))
    positions = torch.arange(5, 9)
    plain, triton = (kernels.sample(logits, *told, positions).tolist() for kernels in (TorchKernels(), TritonKernels()))
    assert plain == triton
