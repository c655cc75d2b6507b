"""`llmsim workload fit` writes traffic like a trace's, shows how like, and says what it cannot fit."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from llmsim.scenarios.loading import load_scenario
from llmsim.tests.support.command_line import Outcome, contents, llmsim
from llmsim.tests.support.shared import shared

Capture = pytest.CaptureFixture[str]

PLAYED = """
name: played
model: qwen3-8b
hardware: {gpu: h200-sxm}
engine: {max_num_seqs: 64}
workload: {type: trace, format: mooncake, path: ../trace, time_scale: 2, max_tokens: {factor: 1.5}}
slo: {ttft_s: 2.0}
run: {seed: 5}
"""


def chats(num: int, seed: int = 1) -> str:
    """A trace in Mooncake's format: a block that all share, and conversations that go on for a while."""
    draw, lines, open_chats, next_id, now_ms = Random(seed), [], [], 1, 0.0
    for _ in range(num):
        blocks = open_chats.pop(draw.randrange(len(open_chats))) if len(open_chats) > 20 else [0]
        fresh = draw.randint(0, 6)
        blocks = [*blocks, *range(next_id, next_id + fresh)]
        next_id += fresh + 1
        if draw.random() < 0.8:
            open_chats.append(blocks)
        length = 512 * len(blocks) + draw.randint(1, 512)
        row = {"timestamp": int(now_ms), "input_length": length, "output_length": draw.randint(1, 600)}
        lines.append(json.dumps(row | {"hash_ids": [*blocks, next_id - 1]}))
        now_ms += draw.expovariate(1 / 300)
    return "\n".join([*lines, ""])


def fit(capsys: Capture, *arguments: object) -> Outcome:
    return llmsim(capsys, "workload", "fit", *arguments)


def by_name(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {statistic["name"]: statistic for statistic in report["statistics"]}


def test_a_fit_is_a_scenario_whose_traffic_is_like_the_trace(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "trace").write_text(chats(800))
    done = fit(capsys, tmp_path / "trace", "-o", tmp_path / "out" / "like.yaml", "--json")
    assert done.code == 0
    report = done.json()
    assert report["within_bounds"]
    assert f"{tmp_path}/trace is read as mooncake" in done.err
    found = by_name(report)
    assert abs(found["ideal hit rate, of tokens"]["error"]) < 0.02
    assert found["ideal hit rate, of tokens"]["trace"] > 0.3
    assert found["arrival CV"]["bound"] == found["prompt tokens, P99"]["bound"] == 0.05
    sizes = [abs(one["error"]) for name, one in found.items() if name.startswith("LRU cache of")]
    assert len(sizes) == 3
    assert max(sizes) < 0.08
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["like.gaps.csv", "like.rows.csv", "like.yaml"]
    again = llmsim(capsys, "workload", tmp_path / "out" / "like.yaml", "--json").json()
    assert again["num_requests"] == 800
    assert again["ideal_hit_rate"] == found["ideal hit rate, of tokens"]["synthetic"]
    assert again["arrival_cv"] == found["arrival CV"]["synthetic"]


def test_another_seed_and_another_rate_are_other_traffic_of_the_same_kind(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "trace").write_text(chats(800))
    fit(capsys, tmp_path / "trace", "-o", tmp_path / "like.yaml")
    one = llmsim(capsys, "workload", tmp_path / "like.yaml", "--json").json()
    changes = ("--set", "run.seed=9", "--set", "workload.rate=50", "--set", "workload.requests=1600")
    other = llmsim(capsys, "workload", tmp_path / "like.yaml", *changes, "--json").json()
    assert other["rate"] == pytest.approx(50, rel=0.05)
    assert other["ideal_hit_rate"] == pytest.approx(one["ideal_hit_rate"], abs=0.02)
    assert other["prompt_tokens"]["p90"] == pytest.approx(one["prompt_tokens"]["p90"], rel=0.02)


def test_the_same_trace_gives_the_same_bytes(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "trace").write_text(chats(200))
    for folder in ("a", "b"):
        fit(capsys, tmp_path / "trace", "-o", tmp_path / folder / "like.yaml")
    assert contents(tmp_path / "a") == contents(tmp_path / "b") != {}


def test_a_scenario_around_a_trace_stays_around_its_fit(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "trace").write_text(chats(300))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "s.yaml").write_text(PLAYED)
    report = fit(capsys, tmp_path / "in" / "s.yaml", "-o", tmp_path / "like.yaml", "--json").json()
    played, fitted = load_scenario(tmp_path / "in" / "s.yaml"), load_scenario(tmp_path / "like.yaml")
    around = {"name", "workload"}
    assert fitted.model_dump(exclude=around) == played.model_dump(exclude=around)
    assert fitted.name == "like"
    assert fitted.workload.max_tokens == played.workload.max_tokens
    trace = llmsim(capsys, "workload", tmp_path / "in" / "s.yaml", "--json").json()
    assert by_name(report)["requests/s"]["trace"] == trace["rate"]


def test_files_that_are_there_are_kept_unless_forced(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "trace").write_text(chats(50))
    (tmp_path / "like.rows.csv").write_text("mine")
    done = fit(capsys, tmp_path / "trace", "-o", tmp_path / "like.yaml")
    assert done.code == 2
    assert done.err.splitlines()[-1] == (
        f"error: {tmp_path}/like.rows.csv: exists already; choose another name, or --force to replace it"
    )
    assert contents(tmp_path).keys() == {"trace", "like.rows.csv"}
    assert (tmp_path / "like.rows.csv").read_text() == "mine"
    assert fit(capsys, tmp_path / "trace", "-o", tmp_path / "like.yaml", "--force").code == 0
    assert load_scenario(tmp_path / "like.yaml").workload.type == "prefix_reuse"


def test_a_fit_that_misses_its_bounds_says_so_and_exits_0(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "trace").write_text(chats(300))
    done = fit(capsys, tmp_path / "trace", "-o", tmp_path / "like.yaml", "--rows", 3, "--json")
    assert done.code == 0
    assert not done.json()["within_bounds"]
    assert "warning: the fit misses the bound of " in done.err
    assert "the tables hold 3 rows, drawn from 300 requests" in done.err


def test_requests_at_one_instant_and_refused_ones_are_fitted_without_them(tmp_path: Path, capsys: Capture) -> None:
    rows = [f"7,{10 + n},{n % 5}" for n in range(20)]
    (tmp_path / "trace").write_text("\n".join(["Timestamp,Request tokens,Response tokens", *rows]))
    done = fit(capsys, tmp_path / "trace", "-o", tmp_path / "like.yaml", "--json")
    assert done.json()["within_bounds"]
    assert "4 requests without prompt or output are left out" in done.err
    assert "all requests come at once" in done.err.lower()
    assert load_scenario(tmp_path / "like.yaml").workload.rate == "inf"
    assert not (tmp_path / "like.gaps.csv").exists()


ONE = '{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}\n'


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (None, (), "{folder}/trace: the trace cannot be read: No such file or directory"),
        ("", (), "{folder}/trace: the trace is empty"),
        (ONE, (), "{folder}/trace: a fit needs two requests at least; the trace has 1 to serve"),
        (ONE, ("--format", "mooncke"), "workload.format: 'mooncke' is unknown; did you mean 'mooncake'? choose azure"),
        (ONE, ("--format", "weka"), "workload: format: weka has no times; give workload.rate"),
        (
            ONE,
            ("--format", "weka", "--set", "workload.rate=1"),
            "workload.format: weka holds sessions, whose requests wait for one another: a fit is of single requests",
        ),
        ("x,y\n1,2\n", (), "{folder}/trace: line 1: does not tell the trace's format; name it with --format"),
        (ONE * 2 + "{}", (), "{folder}/trace: line 3: timestamp: is missing"),
        (ONE, ("--rows", "0"), "Invalid value for '--rows'"),
        (ONE * 2, ("-o", "{folder}/like.json"), "{folder}/like.json: is to be a scenario: its name must end in .yaml"),
    ],
)
def test_what_cannot_be_fitted_is_one_line(
    tmp_path: Path, capsys: Capture, text: str | None, arguments: tuple[str, ...], message: str
) -> None:
    if text is not None:
        (tmp_path / "trace").write_text(text)
    output = () if "-o" in arguments else ("-o", tmp_path / "like.yaml")
    done = fit(capsys, tmp_path / "trace", *(word.format(folder=tmp_path) for word in arguments), *output)
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith("error: " + message.format(folder=tmp_path))
    assert contents(tmp_path).keys() <= {"trace"}


def test_a_fit_of_generated_traffic_is_refused(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "s.yaml").write_text("{name: s, model: tiny, hardware: {gpu: h100-sxm}, workload: {type: rag}}")
    done = fit(capsys, tmp_path / "s.yaml", "-o", tmp_path / "like.yaml")
    assert (
        done.err == f"error: {tmp_path}/s.yaml: workload.type: 'rag' is synthetic already: a fit is made for a trace\n"
    )


def test_workload_without_a_command_describes(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("{name: s, model: tiny, hardware: {gpu: h100-sxm}, workload: {type: rag, requests: 9}}")
    short = llmsim(capsys, "workload", "--json", path)
    assert short.code == 0
    assert short.out == llmsim(capsys, "workload", "describe", path, "--json").out
    assert llmsim(capsys, "workload").err == "error: Missing argument 'scenario'.\n"
    described = llmsim(capsys, "workload", "--help").out
    assert "describe" in described
    assert "fit " in described


@pytest.mark.parametrize(
    ("parts", "limit"),
    [
        (("mooncake", "conversation_trace.jsonl.gz"), 1000),
        (("azure", "AzureLLMInferenceTrace_conv_2023.csv.gz"), 2000),
    ],
)
def test_a_slice_of_real_traffic_is_fitted_within_the_bounds(
    tmp_path: Path, capsys: Capture, parts: tuple[str, ...], limit: int
) -> None:
    setting = f"workload.limit={limit}"
    done = fit(capsys, shared("traces", *parts), "--set", setting, "-o", tmp_path / "like.yaml", "--json")
    assert done.json()["within_bounds"], done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "curve"),
    [
        (("mooncake", "conversation_trace.jsonl.gz"), 0.015),
        (("mooncake", "synthetic_trace.jsonl.gz"), 0.06),
        (("azure", "AzureLLMInferenceTrace_code_2023.csv.gz"), 0.0),
        (("azure", "AzureLLMInferenceTrace_conv_2023.csv.gz"), 0.0),
    ],
)
def test_whole_traces_are_fitted_within_the_bounds(
    tmp_path: Path, capsys: Capture, parts: tuple[str, ...], curve: float
) -> None:
    """Lengths and arrival CV within 5 %, ideal hit rate within 0.02; finite LRU caches within `curve`."""
    trace = shared("traces", *parts)
    report = fit(capsys, trace, "-o", tmp_path / "like.yaml", "--json").json()
    assert report["within_bounds"]
    found = by_name(report)
    for seed in (1, 2):
        setting = f"run.seed={seed}"
        other = llmsim(capsys, "workload", tmp_path / "like.yaml", "--set", setting, "--json").json()
        for what in ("prompt", "output"):
            for point in ("P50", "P90", "P95", "P99"):
                wanted = found[f"{what} tokens, {point}"]["trace"]
                assert other[f"{what}_tokens"][point.lower()] == pytest.approx(wanted, rel=0.05)
        assert other["arrival_cv"] == pytest.approx(found["arrival CV"]["trace"], rel=0.05)
        assert other["ideal_hit_rate"] == pytest.approx(found["ideal hit rate, of tokens"]["trace"], abs=0.02)
    errors = [abs(one["error"]) for name, one in found.items() if name.startswith("LRU cache of")]
    assert max(errors, default=0.0) <= curve
