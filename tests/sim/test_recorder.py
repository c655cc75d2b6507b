"""The recorder's files hold the records, and give the columns that memory would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from llmsim.policies.core.records import Blocked
from llmsim.sim import recorder as module
from llmsim.sim.recorder import Recorder
from llmsim.tests.support.synthetic import MS, S, record_busy_run, refused, request, step

REQUEST_COLUMNS = (
    "request_id, tenant, session, intended_s, sent_s, admitted_s, first_scheduled_s, first_token_s, "
    "last_token_s, prompt_tokens, cached_tokens, output_tokens, num_preemptions, num_chunks, blocked_by, "
    "blocked_s, status, priority"
)
STEP_COLUMNS = (
    "step, start_s, duration_s, kind, num_prefill_tokens, num_decodes, context_tokens, num_running, "
    "num_waiting, free_blocks, cached_blocks, kv_tokens, refused_blocks, num_evicted, num_preempted, "
    "num_finished, num_drafts, num_accepted, compute_s, memory_s, host_s, extrapolated"
)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", 100)


def test_files_have_the_columns_of_the_design_even_when_empty(tmp_path: Path) -> None:
    Recorder(tmp_path).close()
    columns = {path.stem: ", ".join(pd.read_parquet(path).columns) for path in tmp_path.iterdir()}
    assert columns == {
        "requests": REQUEST_COLUMNS,
        "steps": STEP_COLUMNS,
        "events": "step, time_s, kind, request_id, by, num_blocks, reason",
        "itl": "gap_s, num_tokens",
    }


def test_times_become_seconds_and_what_never_came_is_null(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.on_request(request("a", 5 * S, tenant="t", blocked_by=Blocked.SLOTS, blocked_ns=250 * MS))
    recorder.on_request(refused("b", 0))
    recorder.close()
    first, second = pd.read_parquet(tmp_path / "requests.parquet").to_dict("records")
    assert (first["sent_s"], first["last_token_s"], first["blocked_s"]) == (5.0, 8.0, 0.25)
    assert (first["tenant"], first["blocked_by"], first["status"]) == ("t", "slots", "finished")
    assert (second["status"], second["output_tokens"]) == ("refused", 0)
    assert pd.isna(second["admitted_s"])
    assert pd.isna(second["blocked_by"])


@pytest.mark.usefixtures("small_chunks")
def test_every_row_is_written_once_and_in_order(tmp_path: Path) -> None:
    record_busy_run(Recorder(tmp_path), num_steps=1234)
    steps = pd.read_parquet(tmp_path / "steps.parquet")
    assert steps["step"].tolist() == list(range(1234))
    assert len(pd.read_parquet(tmp_path / "requests.parquet")) == 125
    events, gaps = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("events", "itl"))
    assert len(events) == steps["num_preempted"].sum() > 0
    assert gaps["num_tokens"].sum() == steps["num_running"].sum()
    assert gaps["gap_s"].is_monotonic_increasing


@pytest.mark.usefixtures("small_chunks")
def test_steps_read_back_are_the_integers_that_were_recorded(tmp_path: Path) -> None:
    in_memory, on_disk = Recorder(), Recorder(tmp_path)
    rng = np.random.default_rng(0)
    for i, start in enumerate(np.sort(rng.integers(0, 20 * 24 * 3600 * S, 1050)).tolist()):
        record = step(i, start, int(rng.integers(1, 10**9)), num_running=i, extrapolated=i % 3 == 0)
        in_memory.on_step(record)
        on_disk.on_step(record)
    in_memory.close()
    on_disk.close()
    chunks = list(zip(in_memory.step_chunks(), on_disk.step_chunks(), strict=True))
    assert len(chunks) == 11
    for kept, read in chunks:
        for a, b in zip(kept, read, strict=True):
            np.testing.assert_array_equal(a, b)


def test_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        record_busy_run(Recorder(folder))
        contents.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert len(contents[0]) == 4
    assert contents[0] == contents[1]
