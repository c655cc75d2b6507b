"""Which reader goes with a measured run, told by what is there."""

from __future__ import annotations

from pathlib import Path

from .errors import RunError
from .measured_run import MeasuredRun
from .plain_csv import read_plain_csv
from .reading import read_text
from .sglang_bench import read_sglang_bench
from .vllm_bench import read_vllm_bench
from .vllm_recording import REQUESTS, read_vllm_recording

KNOWN = f"a folder with {REQUESTS}, the JSON of vllm bench serve, the jsonl of sglang.bench_serving, or a CSV"


def read_run(path: Path) -> MeasuredRun:
    """The measured run at `path`, a folder or a file. RunError names file, row and what is wrong."""
    if not path.exists():
        raise RunError(path, None, "there is no such file or folder")
    if path.is_dir():
        if not (path / REQUESTS).exists():
            raise RunError(path, None, f"holds no {REQUESTS}; a run is {KNOWN}")
        return read_vllm_recording(path)
    text = read_text(path).lstrip()
    if not text.startswith("{"):
        return read_plain_csv(path)
    return read_vllm_bench(path) if '"model_id"' in text else read_sglang_bench(path)
