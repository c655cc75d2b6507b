"""The printed tables fit 80 columns and say what the summary says."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console, RenderableType

from llmsim.scenarios.tables import memory_table, print_summary, summary_tables, warnings_of
from llmsim.sim.fragmentation import KVLayout
from llmsim.sim.latencies import Slo
from llmsim.sim.metrics import Summary, summarize
from llmsim.sim.recorder import Recorder
from llmsim.tests.support.synthetic import MEMORY, facts, record_busy_run, record_queue


def text_of(renderable: RenderableType) -> str:
    console = Console(width=80, file=io.StringIO(), highlight=False)
    console.print(renderable)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in printed
    return str(printed)


def busy_summary(**changes: Any) -> Summary:
    recorder = Recorder()
    record_busy_run(recorder)
    return summarize(recorder, facts(**changes))


def cells(text: str, label: str) -> list[str]:
    """The cells of the line that begins with the label."""
    line = next(line for line in text.splitlines() if line.strip().startswith(label))
    return line.strip().removeprefix(label).split()


def test_latencies_stand_in_sensible_units() -> None:
    text = text_of(summary_tables(busy_summary()))
    assert cells(text, "TTFT") == ["2.00"] * 6 + ["0", "s"]
    assert cells(text, "TPOT") == ["100"] * 6 + ["0", "ms"]
    assert cells(text, "queue") == ["1.00"] * 6 + ["0", "s"]
    assert [line.strip() for line in text.splitlines()[:2]] == ["made-up: vllm@0.33", "300 requests finished"]


def test_engine_figures_are_those_of_the_summary() -> None:
    summary = busy_summary(slo=Slo(ttft_s=3.0))
    text = text_of(summary_tables(summary))
    assert f"{summary['prefix_hit_rate']:.1%}" in text
    assert f"{summary['running']['mean']:.1f} / {summary['running']['max']}" in text
    assert cells(text, "goodput, requests/s")[0] == f"{summary['goodput_rps']:.2f}"
    assert "no SLO" in text_of(summary_tables(busy_summary()))


def test_fragmentation_is_told_where_it_has_a_meaning() -> None:
    contiguous = KVLayout(16, shares_blocks=False, is_contiguous=True)
    summary = busy_summary(kv_layout=contiguous)
    text = text_of(summary_tables(summary))
    loss = summary["fragmentation"]
    assert f"internal frag., mean / max {loss['internal']['mean']:.1%} / {loss['internal']['max']:.1%}" in squeezed(
        text
    )
    assert f"external frag., mean / max {loss['external']['mean']:.1%} / {loss['external']['max']:.1%}" in squeezed(
        text
    )
    assert cells(text, "refused admissions")[0] == str(loss["num_refused_admissions"])
    assert cells(text, "of which for holes")[0] == "-"
    paged = text_of(summary_tables(busy_summary(kv_layout=KVLayout(16, shares_blocks=False))))
    assert "internal frag." in paged
    assert "external frag." not in paged
    assert "frag." not in text_of(summary_tables(busy_summary()))


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_large_figures_still_fit() -> None:
    summary = busy_summary()
    for key in ("ttft_s", "itl_s", "e2e_s"):
        summary[key] = dict.fromkeys(summary[key], 9_876.5)
    summary["queue_s"] = dict.fromkeys(summary["queue_s"], 123_456.7)
    summary["waiting"] = {"mean": 12_345.6, "max": 98_765}
    summary["kv_usage"] = {"mean": 1.0, "max": 1.0}
    summary |= {"total_tokens_per_s": 1_234_567.8, "num_steps": 98_765_432}
    text = text_of(summary_tables(summary))
    assert cells(text, "E2E")[:6] == ["9,876"] * 6
    assert cells(text, "queue") == ["34.3"] * 6 + ["0", "h"]


def test_a_run_without_finished_requests_prints_too() -> None:
    recorder = Recorder()
    recorder.close()
    text = text_of(summary_tables(summarize(recorder, facts())))
    assert cells(text, "TTFT") == ["-"] * 6


def test_warnings_say_what_to_mistrust() -> None:
    recorder = Recorder()
    record_queue(recorder, 3000, load=1.5)
    overloaded = warnings_of(summarize(recorder, facts()))
    assert len(overloaded) == 1
    assert overloaded[0].startswith("overloaded: the queue grew by 0.4")
    busy = warnings_of(busy_summary())
    assert busy[0].startswith("1 refused of 301 requests")
    assert "outside the measured grid" in busy[1]


def test_summary_is_printed_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(busy_summary())
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "TTFT" in captured.err


def test_memory_table_shows_the_budget() -> None:
    text = text_of(memory_table(MEMORY))
    assert cells(text, "weights") == ["14.90", "78.0%"]
    assert cells(text, "budget") == ["19.09", "100%"]
    assert cells(text, "KV blocks") == ["1,001"]
