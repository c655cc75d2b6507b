"""Reads a result of `python -m sglang.bench_serving --output-details`: a line of JSON a run.

Beside the lists of each request (`bench_details`) a line has `backend`, `request_rate`, `max_concurrency` and, from a
server that tells, `server_info` with its settings. There are no times at which requests were sent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .bench_details import bench_requests
from .errors import RunError
from .measured_run import MeasuredRun, RunSetup
from .order import from_first_arrival
from .reading import read_json_lines

_ENGINE = (
    *("chunked_prefill_size", "max_prefill_tokens", "max_running_requests", "context_length", "page_size"),
    *("mem_fraction_static", "schedule_policy", "schedule_conservativeness", "disable_radix_cache"),
    *("disable_overlap_schedule", "enable_mixed_chunk", "kv_cache_dtype"),
)


def read_sglang_bench(path: Path) -> MeasuredRun:
    """The run whose result is in `path`; RunError names what is wrong."""
    lines = [fields for _, fields in read_json_lines(path)]
    if len(lines) > 1:
        raise RunError(path, "line 2", f"holds another run: a file is one run, this one has {len(lines)}")
    requests, assumed = bench_requests(lines[0], path, "--output-details")
    return MeasuredRun(path, from_first_arrival(requests), _setup(lines[0]), assumptions=tuple(assumed))


def _setup(fields: dict[str, Any]) -> RunSetup:
    server = fields.get("server_info")
    if not isinstance(server, dict):
        return RunSetup("sglang")
    engine = {name: server[name] for name in _ENGINE if server.get(name) is not None}
    if type(server.get("max_total_num_tokens")) is int:
        engine["max_total_tokens"] = server["max_total_num_tokens"]
    model, gpus = server.get("model_path"), server.get("tp_size")
    return RunSetup(
        "sglang",
        model if isinstance(model, str) else None,
        tensor_parallel=gpus if type(gpus) is int else None,
        engine=engine,
    )
