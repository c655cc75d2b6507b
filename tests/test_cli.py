"""The command line: what each command prints and writes when all is well."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from llmsim import __version__
from llmsim.policies.core import specs
from llmsim.tests.support.command_line import Outcome, contents, finish, llmsim, start, strict_json
from llmsim.tests.support.scenario_files import BUSY, write_scenario
from llmsim.tests.support.tree import ROOT

Capture = pytest.CaptureFixture[str]

DISTRIBUTION = {"mean", "p50", "p90", "p95", "p99", "max"}
OBJECTS = {
    **dict.fromkeys(("ttft_s", "tpot_s", "itl_s", "itl_request_mean_s", "e2e_s", "queue_s"), DISTRIBUTION),
    **{key: {"mean", "max"} for key in ("kv_usage", "running", "waiting")},
    "utilization": {"busy", "flops", "bandwidth"},
    "num_requests": {"finished", "refused", "aborted", "unfinished"},
    "memory": {"weights_bytes", "kv_bytes", "activations_bytes", "buffers_bytes", "budget_bytes", "num_blocks"},
}
RATES = ("requests_per_s", "output_tokens_per_s", "total_tokens_per_s", "goodput_rps", "prefix_hit_rate", "duration_s")
COUNTS = ("cached_tokens", "num_preemptions", "num_steps", "seed")

REQUESTS = (
    "request_id tenant session intended_s sent_s admitted_s first_scheduled_s first_token_s last_token_s prompt_tokens "
    "cached_tokens output_tokens num_preemptions num_chunks blocked_by blocked_s status priority"
)
STEPS = (
    "step start_s duration_s kind num_prefill_tokens num_decodes context_tokens num_running num_waiting free_blocks "
    "cached_blocks kv_tokens refused_blocks num_evicted num_preempted num_finished num_drafts num_accepted "
    "compute_s memory_s host_s extrapolated"
)
BLOCKED_BY = {"arrival", "slots", "memory", "budget", "order", "chunk", "transfer", None}


def busy(capsys: Capture, folder: Path, *arguments: object) -> Outcome:
    """The busy scenario, run into `folder`/out."""
    return llmsim(capsys, "run", write_scenario(folder, BUSY), "-o", folder / "out", *arguments)


def test_json_is_the_summary_alone_on_stdout(tmp_path: Path, capsys: Capture) -> None:
    done = busy(capsys, tmp_path, "--json")
    assert done.code == 0
    assert done.json() == strict_json((tmp_path / "out" / "summary.json").read_text())
    assert "TTFT" in done.err
    assert "preemptions" in done.err
    quiet = busy(capsys, tmp_path, "--force")
    assert (quiet.code, quiet.out) == (0, "")


def test_the_summary_holds_every_promised_key_in_its_shape(tmp_path: Path, capsys: Capture) -> None:
    summary = busy(capsys, tmp_path, "--json").json()
    assert {key: set(summary[key]) for key in OBJECTS} == OBJECTS
    assert all(isinstance(value, int | float) for key in OBJECTS for value in summary[key].values())
    assert all(type(summary[key]) is float for key in RATES)
    assert all(type(summary[key]) is int for key in COUNTS)
    assert summary["overloaded"] is False
    assert (summary["scenario"], summary["seed"], summary["version"]) == ("busy", 0, __version__)
    assert summary["num_requests"] == {"finished": 400, "refused": 0, "aborted": 0, "unfinished": 0}


def test_goodput_is_null_without_an_slo(tmp_path: Path, capsys: Capture) -> None:
    summary = busy(capsys, tmp_path, "--json", "--set", "slo={}").json()
    assert summary["goodput_rps"] is None


def test_the_result_folder_holds_the_promised_tables(tmp_path: Path, capsys: Capture) -> None:
    assert busy(capsys, tmp_path).code == 0
    out = tmp_path / "out"
    names = ["events.parquet", "itl.parquet", "requests.parquet", "scenario.yaml", "steps.parquet", "summary.json"]
    assert sorted(os.listdir(out)) == names
    assert pq.read_schema(out / "requests.parquet").names == REQUESTS.split()
    assert pq.read_schema(out / "steps.parquet").names == STEPS.split()
    requests = pq.read_table(out / "requests.parquet").to_pydict()
    assert set(requests["blocked_by"]) <= BLOCKED_BY
    assert set(requests["status"]) == {"finished"}
    assert {"preempt", "evict"} == set(pq.read_table(out / "events.parquet").to_pydict()["kind"])


def test_the_resolved_scenario_gives_the_same_run(tmp_path: Path, capsys: Capture) -> None:
    busy(capsys, tmp_path, "--set", "workload.requests=50", "--set", "run.seed=3")
    resolved = tmp_path / "out" / "scenario.yaml"
    assert yaml.safe_load(resolved.read_text())["engine"]["max_num_batched_tokens"] == 512
    assert llmsim(capsys, "run", resolved, "-o", tmp_path / "again").code == 0
    assert contents(tmp_path / "again") == contents(tmp_path / "out")


def test_results_are_numbered_without_an_output_folder(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_scenario(tmp_path, BUSY)
    for number in (1, 2):
        done = llmsim(capsys, "run", path, "--set", "workload.requests=2")
        assert done.err.endswith(f"results in results/busy-00{number}\n")
    assert sorted(os.listdir("results")) == ["busy-001", "busy-002"]


def test_check_says_what_fits_and_writes_nothing(tmp_path: Path, capsys: Capture) -> None:
    path = write_scenario(tmp_path, BUSY)
    done = llmsim(capsys, "check", path, "--json")
    assert done.code == 0
    report = done.json()
    assert report["memory"]["num_blocks"] == 400
    assert report["memory"].keys() >= OBJECTS["memory"]
    assert report["max_concurrency_at_mean"] < 48
    assert str(48) in report["note"]  # max_num_seqs is more than the cache holds
    assert "KV cache" in done.err
    assert os.listdir(tmp_path) == ["s.yaml"]


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("models", specs.model_names()),
        ("gpus", specs.gpu_names()),
        ("policies", ["batching", "scheduling", "preemption", "chunk_size", "eviction"]),
    ],
)
def test_list_names_what_a_scenario_can_name(capsys: Capture, what: str, names: list[str]) -> None:
    done = llmsim(capsys, "list", what)
    assert (done.code, done.err) == (0, "")
    as_json = llmsim(capsys, "list", what, "--json").json()
    assert list(as_json) == names
    known = names if what != "policies" else [name for policies in as_json.values() for name in policies]
    assert known
    assert all(name in done.out for name in [*names, *known])


def test_schema_prints_the_json_schema_alone(capsys: Capture) -> None:
    done = llmsim(capsys, "schema")
    assert (done.code, done.err) == (0, "")
    assert set(done.json()["required"]) == {"name", "model", "hardware", "workload"}


def test_plot_draws_a_png(tmp_path: Path, capsys: Capture) -> None:
    busy(capsys, tmp_path)
    done = llmsim(capsys, "plot", tmp_path / "out", "-o", tmp_path / "picture.png")
    assert (done.code, done.out) == (0, "")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert llmsim(capsys, "plot", tmp_path / "out").code == 0
    assert (tmp_path / "out" / "result.png").read_bytes() == (tmp_path / "picture.png").read_bytes()


@pytest.mark.parametrize("name", ["summary.json", "steps.parquet", "requests.parquet", "itl.parquet"])
@pytest.mark.parametrize("raw", [b"{}", None])
def test_plot_of_half_a_result_is_one_line(tmp_path: Path, capsys: Capture, name: str, raw: bytes | None) -> None:
    busy(capsys, tmp_path, "--set", "workload.requests=5")
    damaged = tmp_path / "out" / name
    damaged.unlink()
    if raw is not None:
        damaged.write_bytes(raw)
    done = llmsim(capsys, "plot", tmp_path / "out", "-o", tmp_path / "picture.png")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {tmp_path}/out")
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "picture.png").exists()


@pytest.mark.parametrize("path", sorted(ROOT.glob("scenarios/*.yaml")), ids=lambda path: path.stem)
def test_shipped_scenarios_are_right_and_those_without_a_trace_run(tmp_path: Path, capsys: Capture, path: Path) -> None:
    settings: tuple[str, ...] = ()
    if "type: trace" in path.read_text():
        trace = {"azure": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n"}
        row = '{"timestamp": 0, "input_length": 9, "output_length": 5, "hash_ids": [0]}\n'
        (tmp_path / "trace").write_text(trace.get(path.stem.partition("-")[0], row))
        settings = ("--set", f"workload.path={tmp_path}/trace")
    assert llmsim(capsys, "check", path, *settings).code == 0
    limit = () if settings else ("--set", "workload.duration_s=2")
    assert llmsim(capsys, "run", path, "-o", tmp_path / "out", *settings, *limit).code == 0


@pytest.mark.parametrize(
    "command",
    [
        "run",
        "cache",
        "sweep",
        "compare",
        "check",
        "import",
        "list",
        "policies",
        "schema",
        "plot",
        "decisions",
        "replay",
    ],
)
def test_the_help_of_every_command_has_an_example(capsys: Capture, command: str) -> None:
    done = llmsim(capsys, command, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"Example: llmsim {command} " in done.out


def test_the_module_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = finish(start("--version", cwd=tmp_path))
    assert (done.code, done.out, done.err) == (0, f"llmsim {__version__}\n", "")
    done = finish(start("run", "nothing.yaml", cwd=tmp_path))
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: nothing.yaml: cannot be read: No such file or directory\n"
    assert os.listdir(tmp_path) == []
