"""A sweep as a table for people: one line a setting, figures averaged over the seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
from rich import box
from rich.table import Table

from ...sim.duration_text import duration_text

MISSING = "-"
LATENCIES = (("TTFT\nP99", "ttft_s.p99"), ("ITL\nP99", "itl_s.p99"), ("E2E\nP99", "e2e_s.p99"))
FIGURES = (("output\ntokens/s", "output_tokens_per_s"), ("goodput,\nrequests/s", "goodput_rps"))


def sweep_table(frame: pd.DataFrame, keys: Sequence[str]) -> Table:
    """`frame` as `Sweep.run` gives it; `keys` are the varied ones."""
    num_seeds = frame["seed"].nunique()
    title = f"{frame['scenario'].iloc[0]} on {frame['preset'].iloc[0]}"
    title += f": means of {num_seeds} seeds" if num_seeds > 1 else ""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in (*map(_short, keys), *(name for name, _ in (*LATENCIES, *FIGURES)), "hit\nrate", ""):
        table.add_column(name, justify="right" if name else "left")
    groups = [frame] if not keys else [group for _, group in frame.groupby(list(keys), sort=False)]
    for group in groups:
        settings = [f"{group[key].iloc[0]}" for key in keys]
        latencies = [_text(group, column, duration_text) for _, column in LATENCIES]
        figures = [_text(group, column, "{:,.4g}".format) for _, column in FIGURES]
        hits = _text(group, "prefix_hit_rate", "{:.1%}".format)
        table.add_row(*settings, *latencies, *figures, hits, "overloaded" if group["overloaded"].any() else "")
    return table


def json_rows(frame: pd.DataFrame) -> list[dict[str, object]]:
    """The rows as strict JSON has them: null where there is no figure."""
    rows = frame.to_dict("records")
    return [{str(key): None if pd.isna(value) else value for key, value in row.items()} for row in rows]


def _short(key: str) -> str:
    """`policies.chunk_size.tokens` as `chunk_size` above `tokens`."""
    return "\n".join(key.split(".")[-2:])


def _text(group: pd.DataFrame, column: str, render: Callable[[float], str]) -> str:
    mean = pd.to_numeric(group[column]).mean()
    return MISSING if pd.isna(mean) else render(float(mean))
