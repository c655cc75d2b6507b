from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmsim.calibrate.runs.errors import RunError
from llmsim.calibrate.runs.formats import read_run
from llmsim.calibrate.runs.measured_run import MeasuredRun
from llmsim.tests.support.measured_runs import BENCH


def vllm(folder: Path, **fields: Any) -> MeasuredRun:
    path = folder / "result.json"
    path.write_text(json.dumps({"model_id": "org/tiny", "request_rate": "inf", **BENCH, **fields}))
    return read_run(path)


def sglang(folder: Path, **fields: Any) -> MeasuredRun:
    path = folder / "result.jsonl"
    path.write_text(json.dumps({"backend": "sglang", "request_rate": float("inf"), **BENCH, **fields}) + "\n")
    return read_run(path)


def test_a_result_of_vllm_bench_serve_gives_times_and_gaps(tmp_path: Path) -> None:
    run = vllm(tmp_path, start_times=[7.5, 7.0, 8.0])
    first, second = run.requests
    assert (first.id, first.arrival_s, first.first_token_s) == ("request 2", 0.0, pytest.approx(0.2))
    assert (second.arrival_s, second.last_token_s) == (0.5, pytest.approx(0.63))
    assert second.itls_s == (0.01, 0.02)
    assert run.assumptions == ("of 3 requests 1 failed and are left out",)
    assert run.setup.model == "org/tiny"


def test_without_start_times_all_come_at_once_where_the_rate_is_infinite(tmp_path: Path) -> None:
    run = vllm(tmp_path)
    assert [request.arrival_s for request in run.requests] == [0.0, 0.0]
    assert "all requests were sent at once" in run.assumptions[1]


def test_without_start_times_clients_send_one_after_another(tmp_path: Path) -> None:
    run = vllm(tmp_path, max_concurrency=1)
    assert [request.arrival_s for request in run.requests] == [0.0, pytest.approx(0.13)]


def test_without_start_times_at_a_rate_the_arrivals_are_said_to_be_drawn_anew(tmp_path: Path) -> None:
    run = sglang(tmp_path, request_rate=4.0)
    assert any("drawn anew at 4/s" in said for said in run.assumptions)
    first, second = run.requests
    assert first.arrival_s == 0.0 < second.arrival_s
    bursty = vllm(tmp_path, request_rate=4.0, burstiness=0.01)
    assert bursty.requests[1].arrival_s != second.arrival_s


def test_a_result_of_sglang_tells_the_settings_of_its_server(tmp_path: Path) -> None:
    server = {"model_path": "org/tiny", "tp_size": 2, "chunked_prefill_size": 4096, "max_total_num_tokens": 9000}
    setup = sglang(tmp_path, server_info=server).setup
    assert (setup.preset, setup.model, setup.tensor_parallel) == ("sglang", "org/tiny", 2)
    assert setup.engine == {"chunked_prefill_size": 4096, "max_total_tokens": 9000}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"ttfts": None}, "ttfts: is missing: the benchmark writes it when run with --save-detailed"),
        ({"ttfts": [0.1, 0.2]}, "ttfts, request 3: has 2 entries, but there are 3 input_lens"),
        ({"num_prompts": 4}, "num_prompts: is 4, but input_lens has 3: request 4 is in one alone"),
        ({"itls": [[0.1], 0.1, []]}, "request 2: itls: must be a list of seconds"),
        ({"errors": ["no", "no", "no"]}, "none of its 3 requests succeeded"),
        ({"request_rate": "soon"}, "start_times: is missing"),
        ({"request_rate": 4.0, "burstiness": 0}, "burstiness: must be a number above 0"),
    ],
)
def test_a_broken_result_is_told_in_one_line(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(RunError) as raised:
        vllm(tmp_path, **fields)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_several_runs_in_one_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text(2 * (json.dumps({"backend": "sglang", **BENCH}) + "\n"))
    with pytest.raises(RunError, match="line 2: holds another run"):
        read_run(path)
