"""Reads the columns of a CSV by their names; what is wrong is told by line and column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..complaints import shown
from ..errors import ScenarioError
from .reading import read_lines
from .rows import row_error


def read_cells(
    path: Path, columns: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """`(line, cells)`: those of `columns`, then those of `optional`, empty where the file has no such column.

    Cells are not quoted. Raises ScenarioError where a column is missing, a row has more or fewer cells than the
    header, or there are no rows.
    """
    lines = read_lines(path)
    header = [name.strip() for name in next(lines)[1].split(",")]
    for name in columns:
        if name not in header:
            raise row_error(path, 1, name, f"is missing; the header must hold {', '.join(columns)}")
    places = [header.index(name) if name in header else len(header) for name in columns + optional]
    width, empty = len(header), True
    for line, text in lines:
        empty = False
        cells = text.split(",")
        if len(cells) != width:
            raise row_error(path, line, None, f"has {len(cells)} columns, but the header has {width}")
        cells.append("")  # what a column that is not there holds
        yield line, tuple([cells[place] for place in places])
    if empty:
        raise ScenarioError(path, None, "the trace has a header but no rows")


def count(cell: str, path: Path, line: int, field: str) -> int:
    """A cell that must be a whole number of at least 0."""
    if cell.isdecimal() and cell.isascii() and len(cell) <= 18:
        return int(cell)
    raise row_error(path, line, field, f"must be a whole number of at least 0, not {shown(cell)}")
