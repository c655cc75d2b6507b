"""A cache study's figures as a table for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

NO_LIMIT = "∞"
CELL = "12.34"


def cache_heading(report: Mapping[str, Any]) -> str:
    """What was replayed."""
    return (
        f"{report['source']}: {report['num_requests']:,} requests, {report['num_blocks']:,} blocks of "
        f"{report['block_tokens']:,} tokens, {report['num_distinct_blocks']:,} distinct"
    )


def cache_table(report: Mapping[str, Any]) -> Table:
    """The share of blocks that are found, in %, by policy and size, turned so that it is narrow."""
    rates = {(point["eviction"], f"{point['blocks']:,}"): point["block_hit_rate"] for point in report["points"]}
    labels, sizes = (list(dict.fromkeys(key[i] for key in rates)) for i in (0, 1))
    rates |= {(label, NO_LIMIT): report["unlimited"]["block_hit_rate"] for label in labels}
    sizes.append(NO_LIMIT)
    if _width(labels, sizes) <= _width(sizes, labels):
        return _table("blocks", sizes, labels, {(size, label): rate for (label, size), rate in rates.items()})
    return _table("blocks", labels, sizes, rates)


def _width(columns: list[str], rows: list[str]) -> int:
    return sum(max(len(line) for line in (*column.split(), CELL)) + 2 for column in (*columns, max(rows, key=len)))


def _table(corner: str, rows: list[str], columns: list[str], rates: Mapping[tuple[str, str], float]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(corner, no_wrap=True)
    for column in columns:
        table.add_column(column.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row.replace(" ", "\n"), *(f"{100 * rates[row, column]:.2f}" for column in columns))
    return table
