"""How much memory a trace takes that is read through and played, by its size.

    python -m llmsim.tests.benchmarks.trace_memory --format hash_ids --megabytes 1000

writes such a file to a temporary folder, plays it in this process and prints the process's peak resident memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llmsim.scenarios.schema_workload import UNTIMED_FORMATS, TraceSettings
from llmsim.scenarios.workloads.building import play_trace

IDS_A_ROW = 1000


def _hash_ids(index: int) -> Any:
    ids = [index * 7 % 100_003 + block for block in range(IDS_A_ROW)]
    return {"timestamp": index, "input_length": 16 * IDS_A_ROW, "output_length": 9, "hash_ids": ids}


def _sharegpt(index: int) -> Any:
    turns = [{"from": ("human", "gpt")[turn % 2], "value": f"{index} words " * 100} for turn in range(6)]
    return {"id": f"c{index}", "conversations": turns}


def _weka(index: int) -> Any:
    ids = list(range(IDS_A_ROW))
    call = {"t": 0, "in": 64 * IDS_A_ROW, "out": 9, "hash_ids": ids, "think_time": 1}
    return {"id": f"s{index}", "requests": [call, call, {"t": 1, "type": "subagent", "requests": [call]}]}


def _custom(index: int) -> Any:
    return {"prompt": f"{index} words " * 500, "output_tokens": 9}


def _burstgpt(index: int) -> str:
    return f"{index / 10:.1f},ChatGPT,{index % 3000 + 1},{index % 700 + 1},{index % 3700 + 2},Conversation log"


HEADS = {"burstgpt": "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"}
ROWS: dict[str, Callable[[int], Any]] = {
    "burstgpt": _burstgpt,
    "custom": _custom,
    "hash_ids": _hash_ids,
    "sharegpt": _sharegpt,
    "weka": _weka,
}


def write_rows(path: Path, form: str, num_bytes: int) -> None:
    """Rows of that format, about as many bytes."""
    index = 0
    with path.open("w", encoding="utf-8") as file:
        written = file.write(HEADS.get(form, ""))
        while written < num_bytes:
            row = ROWS[form](index)
            written += file.write((row if isinstance(row, str) else json.dumps(row)) + "\n")
            index += 1


def play(path: Path, form: str) -> int:
    """Read it through and play it, each request served at once; returns how many there were."""
    pace = {"rate": 100.0} if form in UNTIMED_FORMATS else {}
    settings = TraceSettings.model_validate({"type": "trace", "path": "x", "format": form} | pace)
    workload = play_trace(settings, path, 0, lambda text: None)
    num_played = 0
    for arrival in workload.arrivals():
        pending = [arrival]
        while pending:
            ended = pending.pop()
            num_played += 1
            pending.extend(workload.on_finish(ended.request.id, ended.time_ns))
    return num_played


def main() -> None:
    """Print requests and peak memory as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=sorted(ROWS), default="hash_ids")
    parser.add_argument("--megabytes", type=float, default=1000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        write_rows(path, asked.format, round(asked.megabytes * 1e6))
        num_played = play(path, asked.format)
    unit = 1 if sys.platform == "darwin" else 1024
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    print(json.dumps({"megabytes": asked.megabytes, "num_requests": num_played, "peak_megabytes": peak_bytes / 1e6}))


if __name__ == "__main__":
    main()
