from __future__ import annotations

from pathlib import Path

import pytest

from llmsim.calibrate.runs.errors import RunError
from llmsim.calibrate.runs.formats import read_run

HEAD = "request_id,arrival_s,prompt_tokens,output_tokens,first_token_s,last_token_s,hash_ids\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "run.csv"
    path.write_text(text)
    return path


def test_rows_are_put_in_order_of_arrival(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, HEAD + "b,12.5,10,2,13,14,5\na,12,20,2,12.5,,5 6\n"))
    assert [(request.id, request.arrival_s) for request in run.requests] == [("a", 0.0), ("b", 0.5)]
    assert run.requests[0].last_token_s is None
    assert run.requests[0].block_ids == (5, 6)
    assert run.shares_content


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("arrival_s,prompt_tokens\n1,2\n", "column output_tokens is missing; there are arrival_s, prompt_tokens"),
        (HEAD + "a,1,10,2,1.5\n", "line 2: has 5 cells, but there are 7 columns"),
        (HEAD + "a,1,10,2,0.5,2,\n", "line 2: first_token_s is 0.5 s before arrival_s"),
        (HEAD + "a,1,20,2,1.5,2,5\n", "line 2: hash_ids: has 1 ids, but 20 tokens in blocks of 16 need 2"),
        (HEAD + "a,1,20,2,1.5,2,5 x\n", "line 2: hash_ids: must be whole numbers from 0"),
        (HEAD + "a,nan,20,2,1.5,2,\n", 'line 2: arrival_s: must be a number of seconds, not "nan"'),
        (HEAD + "a,1,20.5,2,1.5,2,\n", 'line 2: prompt_tokens: must be a whole number of tokens, not "20.5"'),
        (HEAD + "a,1,20,2,,,\n", "has neither first_token_s nor last_token_s"),
        (HEAD, "has no rows"),
        (" \n", "is empty"),
    ],
)
def test_a_broken_table_is_told_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(RunError) as raised:
        read_run(written(tmp_path, text))
    assert says in str(raised.value)


def test_what_is_no_run_is_told_with_what_would_be_one(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no such file or folder"):
        read_run(tmp_path / "nothing")
    with pytest.raises(RunError, match=r"holds no vllm_requests\.jsonl; a run is a folder with"):
        read_run(tmp_path)
