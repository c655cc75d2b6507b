"""`llmsim workload` describes what the YAML asks for, and says what it could not know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmsim.tests.support.command_line import llmsim

Capture = pytest.CaptureFixture[str]
HEAD = "{name: s, model: tiny, hardware: {gpu: h100-sxm}, "


def scenario(folder: Path, workload: str, rest: str = "") -> Path:
    path = folder / "s.yaml"
    path.write_text(f"{HEAD}workload: {{{workload}}}{rest}}}")
    return path


def test_figures_are_those_that_the_yaml_asks_for(tmp_path: Path, capsys: Capture) -> None:
    asked = (
        "type: independent, rate: 5, requests: 4000, prompt_tokens: {lognormal: {mean: 300, cv: 1}}, output_tokens: 9"
    )
    done = llmsim(capsys, "workload", scenario(tmp_path, asked), "--json")
    assert done.code == 0
    report = done.json()
    assert report["num_requests"] == 4000
    assert report["rate"] == pytest.approx(5, rel=0.05)
    assert report["arrival_cv"] == pytest.approx(1, abs=0.05)
    assert report["prompt_tokens"]["mean"] == pytest.approx(300, rel=0.05)
    assert report["prompt_tokens"]["p50"] == pytest.approx(300 / 2**0.5, rel=0.05)
    assert report["output_tokens"] == dict.fromkeys(("mean", "p50", "p90", "p95", "p99", "max"), 9.0)
    assert (report["ideal_hit_rate"], report["block_hit_rate"], report["shared_prefix_share"]) == (0, 0, 0)
    assert report["reuse_distance_blocks"] == dict.fromkeys(("p50", "p90", "p95", "p99"))
    assert "s: 4,000 requests" in done.err


def test_constant_arrivals_have_no_variation(tmp_path: Path, capsys: Capture) -> None:
    asked = "type: independent, rate: 4, requests: 9, arrivals: constant"
    report = llmsim(capsys, "workload", scenario(tmp_path, asked), "--json").json()
    assert (report["duration_s"], report["rate"], report["arrival_cv"]) == (2.0, 4.0, 0.0)


def test_agents_share_what_a_run_with_room_for_all_finds(tmp_path: Path, capsys: Capture) -> None:
    """One after another and with memory to spare, a run's hit rate is the ideal one."""
    asked = "type: agent, rate: 0.5, requests: 60, tenants: 3, repositories: 2, arrivals: constant"
    path = scenario(tmp_path, asked, ", engine: {preset: vllm}")
    report = llmsim(capsys, "workload", path, "--json").json()
    run = llmsim(capsys, "run", path, "--json", "-o", tmp_path / "out").json()
    assert run["num_preemptions"] == 0
    assert report["ideal_hit_rate"] == pytest.approx(run["prefix_hit_rate"], abs=1e-9)
    assert 0.3 < report["ideal_hit_rate"] < 1


def test_sessions_are_followed_to_their_end_and_refused_requests_counted(tmp_path: Path, capsys: Capture) -> None:
    calls = [{"t": t, "in": 64, "out": out, "hash_ids": [1]} for t, out in ((0, 5), (1, 0), (4, 5))]
    (tmp_path / "trace").write_text(json.dumps({"requests": calls}))
    path = scenario(tmp_path, "type: trace, format: weka, path: trace, rate: 1")
    done = llmsim(capsys, "workload", path, "--json")
    report = done.json()
    assert (report["num_requests"], report["num_refused"], report["num_following"]) == (2, 1, 1)
    assert report["duration_s"] == 4.0
    assert "1 requests are refused and left out" in done.err
    assert "1 requests follow from the end of others" in done.err


def test_a_single_request_has_no_rate(tmp_path: Path, capsys: Capture) -> None:
    report = llmsim(capsys, "workload", scenario(tmp_path, "type: independent, requests: 1"), "--json").json()
    assert (report["rate"], report["arrival_cv"], report["duration_s"]) == (None, None, 0.0)


@pytest.mark.parametrize("asked", ["type: agent, requests: 200", "type: independent, requests: 1"])
def test_picture_is_drawn_and_is_the_same_each_time(tmp_path: Path, capsys: Capture, asked: str) -> None:
    path, one, two = scenario(tmp_path, asked), tmp_path / "one.png", tmp_path / "two.png"
    done = llmsim(capsys, "workload", path, "-o", one)
    assert (done.code, done.out) == (0, "")
    assert f"picture in {one}" in done.err
    llmsim(capsys, "workload", path, "-o", two)
    assert one.read_bytes().startswith(b"\x89PNG")
    assert one.read_bytes() == two.read_bytes()


def test_no_place_for_the_picture_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    done = llmsim(capsys, "workload", scenario(tmp_path, "type: agent, requests: 5"), "-o", tmp_path / "no" / "x.png")
    assert done.code == 2
    assert done.err.splitlines()[-1] == f"error: {tmp_path}/no/x.png: cannot be made: No such file or directory"


def test_a_trace_of_refused_rows_alone_is_described(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "trace").write_text("Timestamp,Request tokens,Response tokens\n1,5,0\n")
    path = scenario(tmp_path, "type: trace, format: burstgpt, path: trace")
    report = llmsim(capsys, "workload", path, "--json", "-o", tmp_path / "x.png").json()
    assert (report["num_requests"], report["num_refused"], report["ideal_hit_rate"]) == (0, 1, None)
