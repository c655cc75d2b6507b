"""Two results of the same traffic, request by request; of other traffic, one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from llmsim.scenarios.studies.comparison_table import _settings
from llmsim.tests.support.command_line import llmsim
from llmsim.tests.support.scenario_files import BUSY, write_scenario

Capture = pytest.CaptureFixture[str]


def ran(folder: Path, capsys: Capture, name: str, *overrides: str) -> Path:
    settings = [word for override in overrides for word in ("--set", override)]
    assert llmsim(capsys, "run", write_scenario(folder, BUSY), "-o", folder / name, *settings).code == 0
    return folder / name


def times(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "requests.parquet").set_index("request_id").sort_values("sent_s")


def test_differences_are_those_of_the_same_requests(tmp_path: Path, capsys: Capture) -> None:
    a = ran(tmp_path, capsys, "a")
    b = ran(tmp_path, capsys, "b", "policies.chunk_size.tokens=64", "run.warmup_s=0.4")
    done = llmsim(capsys, "compare", a, b, "--json")
    assert done.code == 0
    answer = done.json()
    one, other = times(a), times(b)
    measured = other.index[other.sent_s >= 0.4]
    assert 250 < len(measured) < 400
    assert answer["num_pairs"] == len(measured)
    for name, column in (("ttft_s", "first_token_s"), ("e2e_s", "last_token_s")):
        difference = (other[column] - other.sent_s).loc[measured] - (one[column] - one.sent_s).loc[measured]
        found = answer[name]["difference"]
        assert found["mean"] == pytest.approx(difference.mean())
        assert found["p99"] == pytest.approx(np.percentile(difference, 99))
        assert found["share_lower"] == pytest.approx((difference < 0).mean())
        assert found["mean_interval_95"][0] < found["mean"] < found["mean_interval_95"][1]
        assert answer[name]["a"]["p50"] == pytest.approx((one[column] - one.sent_s).loc[measured].median())
    assert answer["tpot_s"]["difference"]["mean"] != 0
    assert answer["settings"] == {
        "policies.chunk_size.tokens": [192, 64],
        "run.warmup_s": [0.0, 0.4],
    }
    assert all(answer[side]["max_tokens"] == "exact" and answer[side]["preset"] == "vllm@0.33" for side in "ab")
    assert "chunk_size" in done.err


def test_a_result_does_not_differ_from_itself(tmp_path: Path, capsys: Capture) -> None:
    a = ran(tmp_path, capsys, "a", "workload.requests=50")
    answer = llmsim(capsys, "compare", a, a, "--json").json()
    assert answer["settings"] == {}
    for name in ("ttft_s", "tpot_s", "e2e_s"):
        assert answer[name]["a"] == answer[name]["b"]
        found = answer[name]["difference"]
        assert (found["mean"], found["max"], found["share_lower"], found["share_higher"]) == (0, 0, 0, 0)
        assert found["mean_interval_95"] is None  # 50 requests are too few to tell


def test_pairs_find_a_difference_that_the_requests_own_spread_hides(tmp_path: Path, capsys: Capture) -> None:
    """3 ms more of network: exactly that for everybody, though TTFTs spread over far more."""
    a = ran(tmp_path, capsys, "a")
    b = ran(tmp_path, capsys, "b", "frontend.network_s=0.003")
    answer = llmsim(capsys, "compare", a, b, "--json").json()["ttft_s"]
    low, high = answer["difference"]["mean_interval_95"]
    assert (low, high) == pytest.approx((0.003, 0.003), rel=1e-6)
    assert answer["a"]["p99"] - answer["a"]["p50"] > 0.03
    back = llmsim(capsys, "compare", b, a, "--json").json()["ttft_s"]
    assert back["difference"]["mean_interval_95"] == pytest.approx([-0.003, -0.003], rel=1e-6)


def test_what_clients_ask_for_may_differ_and_is_shown(tmp_path: Path, capsys: Capture) -> None:
    a = ran(tmp_path, capsys, "a", "workload.requests=30")
    b = ran(tmp_path, capsys, "b", "workload.requests=30", "workload.max_tokens={factor: 2.0}")
    done = llmsim(capsys, "compare", a, b, "--json")
    assert (done.code, done.json()["a"]["max_tokens"], done.json()["b"]["max_tokens"]) == (0, "exact", {"factor": 2.0})


@pytest.mark.parametrize("override", ["workload.rate=140.0", "run.seed=1", "workload.question_tokens=90"])
def test_other_traffic_is_refused_in_one_line(tmp_path: Path, capsys: Capture, override: str) -> None:
    few = "workload.requests=20"
    a, b = ran(tmp_path, capsys, "a", few), ran(tmp_path, capsys, "b", few, override)
    done = llmsim(capsys, "compare", a, b)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert done.err.startswith(f"error: {b}: did not see the traffic of {a}: {override.split('=')[0]}")


def test_other_rows_of_a_trace_are_refused_and_other_folders_are_not(tmp_path: Path, capsys: Capture) -> None:
    head, row = "TIMESTAMP,ContextTokens,GeneratedTokens\n", "2023-11-16 18:15:46.68,374,44\n"
    results = []
    for number, rows in enumerate((row, row, row.replace("374", "375"))):
        (tmp_path / f"t{number}").write_text(head + rows)
        trace = f"workload={{type: trace, format: azure, path: t{number}}}"
        results.append(ran(tmp_path, capsys, f"r{number}", trace))
    assert llmsim(capsys, "compare", results[0], results[1]).code == 0
    refused = llmsim(capsys, "compare", results[0], results[2])
    assert refused.code == 2
    assert "request ids or prompt lengths differ" in refused.err


def test_what_is_no_result_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    a = ran(tmp_path, capsys, "a", "workload.requests=5")
    assert llmsim(capsys, "compare", a, tmp_path).err == (
        f"error: {tmp_path}: is not a result folder: it has no summary.json\n"
    )
    (a / "scenario.yaml").write_text("name: x\n")
    done = llmsim(capsys, "compare", a, a)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "is not what a run writes: KeyError('workload')" in done.err


def test_closed_loops_are_paired_by_request_and_say_what_they_are(tmp_path: Path, capsys: Capture) -> None:
    """Requests are sent when others end, so at other times in A and in B; they are the same requests all the same."""
    loop = ("workload.rate=inf", "workload.concurrency=8")
    a, b = ran(tmp_path, capsys, "a", *loop), ran(tmp_path, capsys, "b", *loop, "engine.max_num_seqs=4")
    done = llmsim(capsys, "compare", a, b, "--json")
    answer = done.json()
    assert answer["num_pairs"] == 400
    assert answer["a"]["closed_loop"]
    assert answer["a"]["overloaded"] is None
    one, other = times(a), times(b)
    difference = (other.first_token_s - other.sent_s) - (one.first_token_s - one.sent_s)
    assert answer["ttft_s"]["difference"]["mean"] == pytest.approx(difference.mean())
    assert "latencies say nothing about traffic that does not wait" in " ".join(done.err.split())
    refused = llmsim(capsys, "compare", a, ran(tmp_path, capsys, "c"))
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)


def test_keys_that_only_one_of_two_engines_has_are_not_shown() -> None:
    settings = {
        "engine.page_size": (None, 1),
        "engine.dtype": ("auto", "float16"),
        "policies.chunk_size.tokens": (64, None),
    }

    def shown(preset: str) -> set[str]:
        side = {"folder": "x", "version": "1", "ran_on": "y", "max_tokens": "exact"}
        table = _settings({"a": side | {"preset": "vllm@0.33"}, "b": side | {"preset": preset}, "settings": settings})
        return {str(cell) for cell in table.columns[0].cells} & set(settings)

    assert shown("sglang@0.5.23") == {"engine.dtype", "policies.chunk_size.tokens"}
    assert shown("vllm@0.33") == set(settings)
