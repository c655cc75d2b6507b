"""Whole traces of real traffic: every request finishes, every block comes back, memory stays small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from llmsim.tests.support.command_line import finish, start, strict_json
from llmsim.tests.support.shared import shared
from llmsim.tests.support.tree import ROOT

pytestmark = pytest.mark.slow

TRACES = {
    "azure": ("azure-conversation.yaml", ("azure", "AzureLLMInferenceTrace_conv_2023.csv.gz")),
    "mooncake": ("mooncake-conversation.yaml", ("mooncake", "conversation_trace.jsonl.gz")),
}
NUM_REQUESTS = {"azure": 19_366, "mooncake": 12_031}
PART = 3000
"""Rows that are played where the whole trace would take long."""

MAX_BYTES = 500 * 10**6


def play(folder: Path, trace: str, gpu: str, limit: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The trace on that GPU, in a process of its own: the summary, and what the run left behind."""
    scenario, parts = TRACES[trace]
    settings = [f"workload.path={shared('traces', *parts)}", f"hardware.gpu={gpu}"]
    if limit is not None:
        settings.append(f"workload.limit={limit}")
    overrides = [word for setting in settings for word in ("--set", setting)]
    arguments = (ROOT / "scenarios" / scenario, "-o", folder / "out", *overrides)
    done = finish(start(*arguments, cwd=folder, module="llmsim.tests.support.inspected_run"))
    assert done.code == 0, done.err
    return strict_json((folder / "out" / "summary.json").read_text()), strict_json(done.out)


def assert_all_served(folder: Path, summary: dict[str, Any], left: dict[str, Any], num_requests: int) -> None:
    """Every request finished with all its tokens, and all blocks but the null block are free again."""
    counts = {"finished": num_requests, "refused": 0, "aborted": 0, "unfinished": 0}
    assert summary["num_requests"] == counts
    assert left["free_blocks"] == left["num_blocks"] - 1 == summary["usable_blocks"]
    assert left["num_sequences"] == 0
    requests = pd.read_parquet(folder / "out" / "requests.parquet")
    assert requests.request_id.nunique() == len(requests) == num_requests
    assert (requests.output_tokens >= 1).all()
    assert (requests.first_token_s <= requests.last_token_s).all()


def total_outputs(folder: Path) -> int:
    return int(pd.read_parquet(folder / "out" / "requests.parquet").output_tokens.sum())


def test_the_whole_azure_conversation_trace_is_served_by_one_h100(tmp_path: Path) -> None:
    summary, left = play(tmp_path, "azure", "h100-sxm")
    assert_all_served(tmp_path, summary, left, NUM_REQUESTS["azure"])
    rows = pd.read_csv(shared("traces", *TRACES["azure"][1]))
    assert total_outputs(tmp_path) == rows.GeneratedTokens.sum()
    assert not summary["overloaded"]


def test_the_whole_mooncake_conversation_trace_is_served_by_one_h200_in_500_mb(tmp_path: Path) -> None:
    summary, left = play(tmp_path, "mooncake", "h200-sxm")
    assert_all_served(tmp_path, summary, left, NUM_REQUESTS["mooncake"])
    rows = pd.read_json(shared("traces", *TRACES["mooncake"][1]), lines=True)
    assert total_outputs(tmp_path) == rows.output_length.sum()
    assert summary["cached_tokens"] > 0
    assert left["peak_bytes"] < MAX_BYTES


@pytest.mark.parametrize(("trace", "gpu"), [("azure", "h200-sxm"), ("mooncake", "h100-sxm")])
def test_the_first_requests_are_served_by_the_other_gpu_too(tmp_path: Path, trace: str, gpu: str) -> None:
    summary, left = play(tmp_path, trace, gpu, PART)
    assert_all_served(tmp_path, summary, left, PART)
    assert left["peak_bytes"] < MAX_BYTES
