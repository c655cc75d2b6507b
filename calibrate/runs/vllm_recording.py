"""Reads a folder that LLMServingSim's bench recorded of a vLLM engine: `vllm_requests.jsonl` and its neighbours.

    vllm_requests.jsonl   request_id, input_toks, output_toks, arrival_time, queued_ts, scheduled_ts, first_token_ts,
                          last_token_ts
    workload.jsonl(.gz)   row i is request bench-i: input_toks, output_toks, arrival_time_ns, hash_ids (optional)
    vllm_timeseries.csv   t (s since the start of the bench), running, waiting, kv_cache_pct (optional)
    vllm_meta.json        the engine's settings, as given and as resolved
    config.json           LLMServingSim's own: what it calls the hardware (optional)

`arrival_time` is the wall clock's, the other stamps are monotonic: they are brought together by the least `queued_ts -
arrival_time`, as if the fastest request had been queued at once.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from .measured_run import MeasuredRequest, MeasuredRun, MeasuredSeries, RunSetup
from .order import check_times, from_first_arrival
from .reading import Row, block_ids, read_json, read_json_lines, read_table

REQUESTS, SERIES, META, HARDWARE = "vllm_requests.jsonl", "vllm_timeseries.csv", "vllm_meta.json", "config.json"
WORKLOADS = ("workload.jsonl.gz", "workload.jsonl")
_ENGINE = ("max_num_seqs", "max_num_batched_tokens", "max_model_len", "dtype", "kv_cache_dtype")
_CACHE = ("block_size", "gpu_memory_utilization", "enable_prefix_caching")
_SCHEDULER = (
    *("async_scheduling", "enable_chunked_prefill"),
    *("long_prefill_token_threshold", "scheduler_reserve_full_isl"),
)


def read_vllm_recording(folder: Path) -> MeasuredRun:
    """The run in `folder`; RunError names file, row and field."""
    rows = [Row(folder / REQUESTS, where, fields) for where, fields in read_json_lines(folder / REQUESTS)]
    workload = _workload(folder)
    matched = [None] * len(rows) if workload is None else match_rows(rows, workload)
    ahead_s = min(row.seconds("queued_ts") - row.seconds("arrival_time") for row in rows)
    requests = [_request(row, ahead_s, planned) for row, planned in zip(rows, matched, strict=True)]
    for request, row in zip(requests, rows, strict=True):
        check_times(request, row)
    meta = read_json(folder / META)
    first_s = min(request.arrival_s for request in requests) - ahead_s
    return MeasuredRun(
        folder,
        from_first_arrival(requests),
        RunSetup("vllm", _text(meta, "model"), _gpu(folder, meta), _tensor_parallel(meta), _engine(meta)),
        _series(folder / SERIES, Row(folder / META, "the object", meta), first_s),
    )


def match_rows(rows: list[Row], workload: list[Row]) -> list[Row]:
    """The workload's row of each measured one, told by the number in its id. Raises RunError where they differ.

    A request that one of the two lacks is named, as is one whose lengths are others.
    """
    by_number: dict[int, Row] = {}
    for row in rows:
        number = row.label("request_id").rpartition("-")[2]
        if not number.isdigit() or int(number) >= len(workload):
            says = f"is no row of the workload, which has {len(workload)} rows for {len(rows)} requests"
            raise row.error("request_id", f"{row.label('request_id')} {says}")
        if int(number) in by_number:
            raise row.error("request_id", f"{row.label('request_id')} is on {by_number[int(number)].where} too")
        by_number[int(number)] = row
    for place, planned in enumerate(workload):
        if place not in by_number:
            says = f"is not among the {len(rows)} measured requests (bench-{place}), the workload has {len(workload)}"
            raise planned.error(None, says)
        for name in ("input_toks", "output_toks"):
            if planned.tokens(name) != by_number[place].tokens(name):
                says = f"is {planned.tokens(name)} in {planned.path.name}, {planned.where}"
                raise by_number[place].error(name, f"{by_number[place].tokens(name)} {says}")
    return [workload[number] for number in by_number]


def _request(row: Row, ahead_s: float, planned: Row | None) -> MeasuredRequest:
    """A request with times on the monotonic clock."""
    return MeasuredRequest(
        row.label("request_id"),
        row.tokens("input_toks"),
        row.tokens("output_toks"),
        row.seconds("arrival_time") + ahead_s,
        intended_s=None if planned is None else planned.tokens("arrival_time_ns") / 1e9,
        queued_s=row.seconds("queued_ts"),
        scheduled_s=row.seconds("scheduled_ts"),
        first_token_s=row.seconds("first_token_ts"),
        last_token_s=row.seconds("last_token_ts"),
        block_ids=None if planned is None else block_ids(planned, "hash_ids", row.tokens("input_toks")),
    )


def _workload(folder: Path) -> list[Row] | None:
    for path in (folder / name for name in WORKLOADS):
        if path.exists():
            return [Row(path, where, fields) for where, fields in read_json_lines(path)]
    return None


def _series(path: Path, meta: Row, first_s: float) -> MeasuredSeries | None:
    """The time series, from the first arrival on; `first_s` is when that was, on the wall clock."""
    if not path.exists():
        return None
    rows = [Row(path, where, cells) for where, cells in read_table(path, ("t", "running", "waiting"))]
    started_s = _moment(meta, "started_at")
    kv = np.array([row.seconds_if_given("kv_cache_pct") or 0.0 for row in rows]) / 100
    return MeasuredSeries(
        np.array([row.seconds("t") for row in rows]) + started_s - first_s,
        np.array([row.seconds("running") for row in rows]),
        np.array([row.seconds("waiting") for row in rows]),
        kv if kv.any() else None,
    )


def _moment(row: Row, name: str) -> float:
    try:
        return datetime.fromisoformat(row.label(name)).timestamp()
    except ValueError as error:
        raise row.error(name, f"is no moment of ISO 8601: {error}") from None


def _engine(meta: dict[str, Any]) -> dict[str, Any]:
    """The engine's settings under vLLM's names: as resolved, where the run tells, else as given."""
    given, resolved = _part(meta, "engine_kwargs"), _part(meta, "resolved_config")
    settings = {name: given.get(name) for name in _ENGINE}
    for part, names in (("cache_config", _CACHE), ("scheduler_config", _SCHEDULER)):
        settings |= {name: _part(resolved, part).get(name) for name in names}
    cache = _part(meta, "kv_cache")
    settings |= {name: cache.get(name) for name in _CACHE if settings.get(name) is None}
    settings["num_gpu_blocks_override"] = cache.get("num_gpu_blocks")
    return {name: value for name, value in settings.items() if value is not None}


def _part(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    part = mapping.get(name)
    return part if isinstance(part, dict) else {}


def _text(mapping: dict[str, Any], name: str) -> str | None:
    value = mapping.get(name)
    return value if isinstance(value, str) else None


def _tensor_parallel(meta: dict[str, Any]) -> int | None:
    value = _part(meta, "engine_kwargs").get("tensor_parallel_size")
    return value if type(value) is int else None


def _gpu(folder: Path, meta: dict[str, Any]) -> str | None:
    """The device's name, or else what LLMServingSim calls the hardware."""
    device = _text(_part(meta, "hardware"), "device_name")
    if device is not None or not (folder / HARDWARE).exists():
        return device
    try:
        return str(read_json(folder / HARDWARE)["nodes"][0]["instances"][0]["hardware"])
    except (KeyError, IndexError, TypeError):
        return None
