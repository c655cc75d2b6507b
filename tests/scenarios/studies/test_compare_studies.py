"""Two studies of the same traffic, setting by setting and paired by seed; of other traffic, one line."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from llmsim.tests.support.command_line import llmsim
from llmsim.tests.support.scenario_files import BUSY, write_scenario

Capture = pytest.CaptureFixture[str]
FEW = "workload.requests=40"


def swept(folder: Path, capsys: Capture, name: str, *overrides: str, vary: str = "", seeds: int = 3) -> Path:
    settings = [word for override in (FEW, *overrides) for word in ("--set", override)]
    varied = ["--vary", vary or "policies.chunk_size.tokens=64,192"]
    path, target = write_scenario(folder, BUSY), folder / name
    assert llmsim(capsys, "sweep", path, *settings, *varied, "--seeds", seeds, "--jobs", 1, "-o", target).code == 0
    return target


def replicated(folder: Path, capsys: Capture, name: str, *overrides: str, number: int = 3) -> Path:
    settings = [word for override in (FEW, *overrides) for word in ("--set", override)]
    path, target = write_scenario(folder, BUSY), folder / name
    arguments = ("--replications", number, "--jobs", 1, "-o", target)
    assert llmsim(capsys, "run", path, *settings, *arguments).code == 0
    return target


def test_differences_of_sweeps_are_means_over_pairs_of_seeds(tmp_path: Path, capsys: Capture) -> None:
    a, b = swept(tmp_path, capsys, "a"), swept(tmp_path, capsys, "b", "engine.max_num_seqs=8")
    done = llmsim(capsys, "compare", a, b, "--json")
    assert done.code == 0
    answer = done.json()
    assert answer["settings"] == {"engine.max_num_seqs": [48, 8]}
    assert [point["values"] for point in answer["points"]] == [
        {"policies.chunk_size.tokens": 64},
        {"policies.chunk_size.tokens": 192},
    ]
    frames = [pd.read_parquet(folder / "sweep.parquet") for folder in (a, b)]
    for point in answer["points"]:
        assert point["seeds"] == [0, 1, 2]
        tokens = point["values"]["policies.chunk_size.tokens"]
        before, after = (f[f["policies.chunk_size.tokens"] == tokens]["ttft_s.p99"].to_numpy() for f in frames)
        found, difference = point["figures"]["ttft_s.p99"], after - before
        assert (found["a"], found["b"]) == (pytest.approx(before.mean()), pytest.approx(after.mean()))
        half_width = 4.30265 * np.std(difference, ddof=1) / math.sqrt(3)
        mean = difference.mean()
        assert found["interval_95"] == pytest.approx([mean - half_width, mean + half_width], rel=1e-4)
    assert "policies.chunk_size.tokens 192: 3 seeds" in done.err
    assert "TTFT P99" in done.err


def test_replications_are_compared_the_same_way(tmp_path: Path, capsys: Capture) -> None:
    a, b = replicated(tmp_path, capsys, "a"), replicated(tmp_path, capsys, "b", "frontend.network_s=0.003")
    answer = llmsim(capsys, "compare", a, b, "--json").json()
    (point,) = answer["points"]
    assert (point["values"], point["seeds"]) == ({}, [0, 1, 2])
    found = point["figures"]["ttft_s.mean"]
    assert found["difference"] == pytest.approx(0.003, rel=1e-6)
    assert found["interval_95"] == pytest.approx([0.003, 0.003], rel=1e-6)
    assert answer["settings"] == {"frontend.network_s": [0.0, 0.003]}


def test_one_seed_has_no_interval(tmp_path: Path, capsys: Capture) -> None:
    a, b = (swept(tmp_path, capsys, name, vary="policies.chunk_size.tokens=64", seeds=1) for name in "ab")
    done = llmsim(capsys, "compare", a, b, "--json")
    figures = done.json()["points"][0]["figures"]
    assert {(figure["difference"], figure["interval_95"]) for figure in figures.values()} == {(0, None)}
    assert "1 seed, so no interval" in done.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"vary": "policies.chunk_size.tokens=64,100"},
            "has no run with policies.chunk_size.tokens=192, seed 0, which",
        ),
        ({"vary": "engine.max_num_seqs=8,48"}, "varies engine.max_num_seqs, "),
        ({"seeds": 2}, "has no run with policies.chunk_size.tokens=64, seed 2, which"),
        ({"override": "run.seed=1"}, "has no run with policies.chunk_size.tokens=64, seed 0, which"),
        ({"override": "workload.rate=90"}, "workload.rate is 150.0 in the one and 90.0 in the other"),
        ({"override": "workload.tenant_zipf=1.5"}, "workload.tenant_zipf is 1.0 in the one and 1.5 in the other"),
    ],
)
def test_what_does_not_match_is_refused_in_one_line(
    tmp_path: Path, capsys: Capture, change: dict[str, object], message: str
) -> None:
    overrides = [str(change.pop("override"))] if "override" in change else []
    a, b = swept(tmp_path, capsys, "a"), swept(tmp_path, capsys, "b", *overrides, **change)  # type: ignore[arg-type]
    done = llmsim(capsys, "compare", a, b)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert done.err.startswith(f"error: {b}: ")
    assert message in done.err


def test_a_default_that_was_written_out_is_the_same_traffic(tmp_path: Path, capsys: Capture) -> None:
    a, b = swept(tmp_path, capsys, "a"), swept(tmp_path, capsys, "b", "workload.tenant_zipf=1.0")
    assert llmsim(capsys, "compare", a, b).code == 0


def test_what_clients_ask_for_may_differ_and_be_varied(tmp_path: Path, capsys: Capture) -> None:
    vary = "workload.max_tokens=exact,{fixed: 300}"
    a, b = (swept(tmp_path, capsys, name, vary=vary, seeds=1) for name in "ab")
    points = llmsim(capsys, "compare", a, b, "--json").json()["points"]
    assert [point["values"]["workload.max_tokens"] for point in points] == ["exact", '{"fixed": 300}']


def test_files_with_other_bytes_are_other_traffic(tmp_path: Path, capsys: Capture) -> None:
    lengths = tmp_path / "lengths"
    folders = []
    for name, text in (("a", "5\n"), ("b", "7\n")):
        lengths.write_text(text)
        folders.append(swept(tmp_path, capsys, name, "workload.output_tokens={empirical: {path: lengths}}", seeds=1))
    done = llmsim(capsys, "compare", *folders)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "the files that it is read from are not the same" in done.err


def test_replications_of_other_requests_are_refused(tmp_path: Path, capsys: Capture) -> None:
    a = replicated(tmp_path, capsys, "a", number=2)
    b = replicated(tmp_path, capsys, "b", "workload.question_tokens=90", number=2)
    done = llmsim(capsys, "compare", a, b)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "did not see the traffic of" in done.err


def test_a_study_is_not_compared_with_a_run_nor_one_that_is_not_finished(tmp_path: Path, capsys: Capture) -> None:
    sweep = swept(tmp_path, capsys, "a", seeds=1)
    assert llmsim(capsys, "run", write_scenario(tmp_path, BUSY), "--set", FEW, "-o", tmp_path / "r").code == 0
    for pair in ((sweep, tmp_path / "r"), (tmp_path / "r", sweep), (sweep, tmp_path)):
        done = llmsim(capsys, "compare", *pair)
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert "is not the folder of a sweep or of replications" in done.err
    (sweep / "sweep.parquet").unlink()
    assert "holds no sweep.parquet: the sweep is not finished" in llmsim(capsys, "compare", sweep, sweep).err
    (sweep / "sweep.json").write_text("{}")
    assert len(llmsim(capsys, "compare", sweep, sweep).err.splitlines()) == 1


def test_closed_loops_are_compared_and_say_what_they_are(tmp_path: Path, capsys: Capture) -> None:
    loop = ("workload.rate=inf", "workload.concurrency=8")
    a, b = swept(tmp_path, capsys, "a", *loop), swept(tmp_path, capsys, "b", *loop, "engine.max_num_seqs=4")
    done = llmsim(capsys, "compare", a, b, "--json")
    answer = done.json()
    assert answer["a"]["closed_loop"]
    assert all(point["num_overloaded"] == {"a": 0, "b": 0} for point in answer["points"])
    assert answer["points"][0]["figures"]["requests_per_s"]["interval_95"][1] < 0
    assert "queue_slope_per_s" not in answer["points"][0]["figures"]
    assert "latencies say nothing about traffic that does not wait" in " ".join(done.err.split())
