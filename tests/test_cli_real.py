"""`llmsim run --engine real`: its options, its mistakes in one line, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llmsim.scenarios.replaying import replay
from llmsim.tests.support.command_line import Outcome, finish, llmsim, start
from llmsim.tests.support.small_real_runs import write_small
from llmsim.tests.test_interrupt import signals_as_in_a_terminal

pytest.importorskip("torch")
Capture = pytest.CaptureFixture[str]
UNPINNED = ("--set", "engine.num_gpu_blocks_override=null")
ON_CPU = ("--engine", "real", "--device", "cpu")


def refused(capsys: Capture, folder: Path, *arguments: object) -> str:
    """The one line; nothing may be left behind."""
    path = write_small(folder)
    before = sorted(os.listdir(folder))
    done = llmsim(capsys, "run", path, "-o", folder / "out", *arguments)
    assert sorted(os.listdir(folder)) == before
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1), done.err
    return done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--device", "cpu"], "error: --device: goes with --engine real"),
        (["--clock", "wall"], "error: --clock: goes with --engine real"),
        (["--kernels", "torch"], "error: --kernels: goes with --engine real"),
        (["--model-path", "."], "error: --model-path: goes with --engine real"),
        (["--dtype", "fp32"], "error: --dtype: goes with --engine real"),
        (["--device-memory", "2"], "error: --device-memory: goes with --engine real"),
        (["--engine", "magic"], "'magic' is not one of 'sim', 'real'"),
        (["--engine", "real", "--device", "tpu"], "--device: 'tpu' is unknown; choose auto, cpu, cuda, cuda:1"),
        ([*ON_CPU, "--kernels", "triton"], "error: --kernels: backend triton: the device"),
        ([*ON_CPU, "--replications", "2"], "--replications: goes with the simulator"),
        ([*ON_CPU, "--model-path", "nowhere"], "--model-path: nowhere holds no config.json"),
        ([*ON_CPU, "--device-memory", "1e6", *UNPINNED], "GiB free, weights and KV take "),
        ([*ON_CPU, "--set", "hardware.tensor_parallel=2"], "hardware.tensor_parallel: 2: the real engine does not"),
        ([*ON_CPU, "--set", "engine.quantization=fp8"], "engine.quantization: 'fp8': the real engine does not"),
        ([*ON_CPU, "--set", "engine.kv_cache_dtype=fp8"], "engine.kv_cache_dtype: 'fp8': the real engine does not"),
        ([*ON_CPU, "--set", "engine.kv_cache_dtype=bf16"], "'bf16' differs from the run's fp32"),
        (
            [*ON_CPU, "--set", "run.cache=warm", "--set", "run.outputs=sampled", "--dtype", "bf16"],
            "run.outputs: 'sampled': in bf16 the pass before a warm run may answer otherwise",
        ),
        (
            [*ON_CPU, "--set", "run.cache=warm", "--set", "engine.enable_prefix_caching=false"],
            "run.cache: 'warm' needs a prefix cache",
        ),
        ([*ON_CPU, "--set", "run.warmup_s=auto"], "run.warmup_s: 'auto': the real engine would have to serve"),
        ([*ON_CPU, "--set", "run.outputs=guessed"], "run.outputs: 'guessed' is unknown; choose forced, sampled"),
        ([*ON_CPU, "--set", "model=gemma-2-9b"], "gemma-2-9b: norms_per_layer: 4 is not supported"),
        ([*ON_CPU, "--set", "model=qwen3-30b-a3b"], "qwen3-30b-a3b: num_experts: 128 is not supported"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, capsys: Capture, arguments: list[str], says: str) -> None:
    assert says in refused(capsys, tmp_path, *arguments)


@pytest.mark.skipif(os.environ.get("CUDA_VISIBLE_DEVICES") is None and Path("/dev/nvidia0").exists(), reason="a GPU")
def test_a_gpu_that_is_not_there_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    assert "--device: torch " in refused(capsys, tmp_path, "--engine", "real", "--device", "cuda")


def test_a_model_that_does_not_fit_the_device_gets_a_table_and_a_line(tmp_path: Path, capsys: Capture) -> None:
    path = write_small(tmp_path)
    done = llmsim(capsys, "run", path, *ON_CPU, "--set", "model=llama-3.1-8b", "--device-memory", "4")
    *table, line = done.err.splitlines()
    assert done.code == 2
    assert line.startswith(f"error: {path}: model: llama-3.1-8b does not fit cpu with tensor_parallel 1: weights 29.92")
    shown = "\n".join(table)
    assert all(word in shown for word in ("weights", "KV cache", "activations", "runtime buffers", "813%"))


def test_without_torch_one_line_says_what_to_install(tmp_path: Path) -> None:
    program = "import sys; sys.modules['torch'] = None\nfrom llmsim.cli import main; main(sys.argv[1:])"
    path = write_small(tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", program, "run", str(path), *ON_CPU]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "error: the real engine needs torch, which is not installed: pip install 'llmsim[real]'"
    )
    assert len(done.stderr.splitlines()) == 1


def test_figures_are_printed_and_given_as_json(tmp_path: Path, capsys: Capture) -> None:
    settings = ("--set", "workload.requests=3", "--clock", "virtual", "--json")
    done = llmsim(capsys, "run", write_small(tmp_path), *ON_CPU, *settings, "-o", tmp_path / "out")
    assert done.code == 0
    assert done.json()["engine"] == "real"
    assert "config.json on cpu, real engine (torch kernels, fp32, virtual clock)" in " ".join(done.err.split())


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_writes_what_is_whole(tmp_path: Path) -> None:
    done = interrupted(tmp_path, ["--set", "workload.rate=5", "--set", "workload.requests=100000"])
    assert done.code == 130
    assert done.err.splitlines()[-1].startswith("interrupted; ")
    summary = tmp_path / "out" / "summary.json"
    assert '"interrupted": true' in summary.read_text()
    assert replay(tmp_path / "out").difference is None


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_in_the_pass_before_a_warm_run_writes_nothing(tmp_path: Path) -> None:
    traffic = ["--set", "workload.rate=5", "--set", "workload.requests=100000"]
    done = interrupted(tmp_path, [*traffic, "--set", "run.cache=warm"])
    assert (done.code, done.err.splitlines()[-1]) == (130, "interrupted; nothing was written")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "s.yaml"]


def interrupted(folder: Path, settings: list[str]) -> Outcome:
    """A run in a process of its own that gets a Ctrl-C once it is under way."""
    path = write_small(folder)
    with signals_as_in_a_terminal():
        process = start("run", path, *ON_CPU, *settings, "--journal", "-o", "out", cwd=folder)
    try:
        deadline = time.monotonic() + 120
        while not any(folder.glob(".out.partial-*/journal.jsonl.gz")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.5)  # the journal is opened a moment before the first step
        process.send_signal(signal.SIGINT)
        return finish(process)
    finally:
        process.kill()
