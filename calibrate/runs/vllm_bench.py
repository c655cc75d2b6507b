"""Reads the result of `vllm bench serve --save-result --save-detailed`: one JSON object.

Beside the lists of each request (`bench_details`) it has `model_id`, `num_prompts`, `request_rate` (`"inf"` or a
number), `burstiness` and `max_concurrency`; nothing of the server's settings. The benchmark sends its first prompt once
before it starts, so a server with prefix caching has it when the run begins.
"""

from __future__ import annotations

from pathlib import Path

from .bench_details import bench_requests
from .measured_run import MeasuredRun, RunSetup
from .order import from_first_arrival
from .reading import read_json


def read_vllm_bench(path: Path) -> MeasuredRun:
    """The run whose result is in `path`; RunError names what is wrong."""
    fields = read_json(path)
    requests, assumed = bench_requests(fields, path, "--save-detailed")
    model = fields.get("model_id")
    setup = RunSetup("vllm", model if isinstance(model, str) else None)
    return MeasuredRun(path, from_first_arrival(requests), setup, assumptions=tuple(assumed))
