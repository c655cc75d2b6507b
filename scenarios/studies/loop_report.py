"""A loop's report in its folder, and its figures as tables for people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table

from ...calibrate.loop.pictures import Samples, draw_latencies, draw_policies, draw_steps
from ...calibrate.loop.report import (
    LATENCIES,
    NAMES,
    POLICIES,
    STEPS,
    divergence_said,
    percent,
    report,
    seconds,
    size,
)
from .loop import SIMULATED, Loop
from .loop_folder import FIGURES, REPORT, write_json

STYLES = {"within": "green", "beyond": "red", "inconclusive": "yellow"}


def write_report(loop: Loop) -> None:
    """Pictures, text and figures; the figures last."""
    folder, figures = loop.folder, loop.figures
    repeats = [samples(folder.part(name)) for name in loop.repeats]
    simulated = samples(folder.part(SIMULATED))
    draw_latencies(repeats, simulated, figures["latencies"], folder.path / LATENCIES)
    draw_steps(loop.steps, loop.corrected, folder.path / STEPS)
    if figures["policies"] is not None:
        draw_policies(figures["policies"]["ranked"], folder.path / POLICIES)
    text = report(figures, datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))
    (folder.path / REPORT).write_text(text, encoding="utf-8", newline="\n")
    write_json(folder.path / FIGURES, figures)


def samples(result: Path) -> Samples:
    """Every request's latencies and every gap, of those that were sent after the warm-up and finished."""
    requests = pd.read_parquet(result / "requests.parquet")
    requests = requests[requests["status"] == "finished"]
    gaps = pd.read_parquet(result / "itl.parquet")
    after_first = (requests["output_tokens"] - 1).where(requests["output_tokens"] > 1)
    columns = {
        "ttft_s": requests["first_token_s"] - requests["sent_s"],
        "tpot_s": ((requests["last_token_s"] - requests["first_token_s"]) / after_first).dropna(),
        "e2e_s": requests["last_token_s"] - requests["sent_s"],
    }
    found = {name: column.to_numpy(np.float64) for name, column in columns.items()}
    return found | {"itl_s": np.repeat(gaps["gap_s"].to_numpy(np.float64), gaps["num_tokens"].to_numpy())}


def loop_failures(figures: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Replays that differ, and latencies beyond their bounds: sentences."""
    replays = {name: found["difference"] for name, found in figures["replays"].items()}
    replays["other"] = figures["correction"]["replay_difference"]
    broken = [f"the journal of {name} does not replay: {says}" for name, says in replays.items() if says is not None]
    beyond = [
        f"{NAMES[metric]} {name} is off by {percent(row['error'])}, beyond {row['bound']:.0%}"
        for metric, rows in figures["latencies"].items()
        for name, row in rows.items()
        if row["verdict"] == "beyond"
    ]
    return broken, beyond


def loop_tables(figures: Mapping[str, Any]) -> RenderableType:
    """Steps, latencies, and what was decided."""
    return Group(_steps_table(figures["steps"]), _latencies_table(figures["latencies"]), *_lines(figures))


def _lines(figures: Mapping[str, Any]) -> list[str]:
    replayed = all(found["difference"] is None for found in figures["replays"].values())
    lines = [
        f"replay of the journals: {'identical' if replayed else 'differs'}",
        f"running free, decisions {divergence_said(figures['divergence'])}",
    ]
    lines += [f"forced: {said}" for said in figures["profile"]["forced_since"]]
    lines += [figures["profile"]["noise"]] if figures["profile"]["noise"] else []
    if (policies := figures["policies"]) is not None:
        ranked = f"{policies['num_agreeing']} of {policies['num_beyond_noise']}"
        lines.append(f"policies: {ranked} differences beyond the noise ranked as measured")
    return lines


def _steps_table(steps: Mapping[str, Any]) -> Table:
    table = _table("steps, by the profile", "number", "median time", "median error", "P95", "bias")
    for kind, row in steps.items():
        errors = size(row["median"]), size(row["p95"]), percent(row["bias"])
        table.add_row(kind, f"{row['num_steps']:,}", seconds(row["measured_s"]), *errors)
    return table


def _latencies_table(latencies: Mapping[str, Any]) -> Table:
    table = _table("latency", "measured", "simulated", "error", "noise", "bound", "verdict")
    for metric, rows in latencies.items():
        for name, row in rows.items():
            values = seconds(row["measured"]), seconds(row["simulated"]), percent(row["error"]), size(row["noise"])
            style, verdict = STYLES[row["verdict"]], row["verdict"]
            table.add_row(f"{NAMES[metric]} {name}", *values, f"{row['bound']:.0%}", f"[{style}]{verdict}[/]")
        table.add_section()
    return table


def _table(first: str, *names: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    return table
