"""Small measured runs for tests, written in each format; the engine that they are of is a simulated one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from llmsim.calibrate.runs.measured_run import MeasuredRequest, MeasuredRun, RunSetup
from llmsim.scenarios.assembly import Assembly, assemble
from llmsim.scenarios.loading import scenario_from
from llmsim.scenarios.studies.measured_replay import replay

NO_HOST = {"host_step_s": 0, "host_request_s": 0}
"""With the host's usual millisecond a step, a small model's device time would hardly be seen."""
ENGINE = {"num_gpu_blocks_override": 400, "max_num_seqs": 32, "max_num_batched_tokens": 512}


def small_assembly(**hardware: object) -> Assembly:
    """A small model on an H100, with these keys of `hardware` beside."""
    raw: dict[str, Any] = {
        "name": "small",
        "model": "llama-3.2-1b",
        "engine": ENGINE,
        "workload": {"type": "independent"},
    }
    return assemble(scenario_from({**raw, "hardware": {"gpu": "h100-sxm", "efficiencies": NO_HOST, **hardware}}))


def traffic(num_requests: int = 60, rate: float = 100.0, seed: int = 0) -> MeasuredRun:
    """Requests with nothing measured yet but their arrivals."""
    random = np.random.default_rng(seed)
    times = np.round(np.cumsum(random.exponential(1 / rate, num_requests)), 9)
    lengths = random.integers(10, 80, (num_requests, 2)).tolist()
    requests = [
        MeasuredRequest(f"r{index}", prompt, output, time, intended_s=time + 0.001)
        for index, (time, (prompt, output)) in enumerate(zip((times - times[0]).tolist(), lengths, strict=True))
    ]
    setup = RunSetup("vllm", "meta-llama/Llama-3.2-1B-Instruct", "NVIDIA H100 SXM", 1, dict(ENGINE))
    return MeasuredRun(Path("small"), tuple(requests), setup)


def measured_on(assembly: Assembly, run: MeasuredRun, cold_start_s: Sequence[float] = ()) -> MeasuredRun:
    """The run as if the engine of `assembly` were the real one, whose first steps took the host so long."""
    times = replay(assembly, run, cold_start_s=cold_start_s).times()
    requests = [
        MeasuredRequest(
            request.id,
            request.prompt_tokens,
            request.output_tokens,
            request.arrival_s,
            intended_s=request.intended_s,
            queued_s=float(times.scheduled_s[index]),
            scheduled_s=float(times.scheduled_s[index]),
            first_token_s=float(times.first_token_s[index]),
            last_token_s=float(times.last_token_s[index]),
        )
        for index, request in enumerate(run.requests)
    ]
    return MeasuredRun(run.source, tuple(requests), run.setup)


def write_csv(run: MeasuredRun, path: Path) -> Path:
    """The run as the plain CSV."""
    names = ("arrival_s", "prompt_tokens", "output_tokens", "queued_s", "scheduled_s", "first_token_s", "last_token_s")
    rows = [",".join(str(getattr(request, name)) for name in names) for request in run.requests]
    path.write_text("\n".join([",".join(names), *rows, ""]), encoding="utf-8")
    return path


RECORDED = [
    {"request_id": "bench-0", "input_toks": 20, "output_toks": 3, "arrival_time": 1000.0, "queued_ts": 50.0},
    {"request_id": "bench-1", "input_toks": 40, "output_toks": 2, "arrival_time": 1000.5, "queued_ts": 50.6},
]


def write_recording(folder: Path) -> Path:
    """Two requests in the form of LLMServingSim's recordings of vLLM, with a workload, a series and settings."""
    rows = [
        {**row, "scheduled_ts": row["queued_ts"] + 0.1, "first_token_ts": row["queued_ts"] + 0.3}  # type: ignore[operator]
        | {"last_token_ts": row["queued_ts"] + 0.5}  # type: ignore[operator]
        for row in RECORDED
    ]
    planned = [
        {"input_toks": 20, "output_toks": 3, "arrival_time_ns": 10**8, "hash_ids": [0, 1]},
        {"input_toks": 40, "output_toks": 2, "arrival_time_ns": 5 * 10**8, "hash_ids": [0, 2, 3]},
    ]
    meta = {"model": "org/tiny", "started_at": "1970-01-01T00:16:39.500000Z", "engine_kwargs": {"max_num_seqs": 8}}
    folder.mkdir(exist_ok=True)
    write_lines(folder / "vllm_requests.jsonl", rows)
    write_lines(folder / "workload.jsonl", planned)
    (folder / "vllm_meta.json").write_text(json.dumps(meta), encoding="utf-8")
    (folder / "vllm_timeseries.csv").write_text("t,running,waiting,kv_cache_pct\n1.0,2,1,50.0\n", encoding="utf-8")
    return folder


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """One JSON object a line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


BENCH = {
    "num_prompts": 3,
    "input_lens": [100, 200, 50],
    "output_lens": [3, 2, 0],
    "ttfts": [0.1, 0.2, 0.0],
    "itls": [[0.01, 0.02], [0.03], []],
    "errors": ["", "", "timed out"],
}
"""What both benchmarks write of three requests, of which one failed."""
