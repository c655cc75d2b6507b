"""Reads and writes the rows of `prefix_reuse`: what a request is, and what of earlier prompts it reuses."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..errors import ScenarioError
from ..traces.cells import count, read_cells
from ..traces.rows import row_error
from .number_files import HIGHEST
from .recency import Reuse

COLUMNS = ("prompt_tokens", "output_tokens", "reused_blocks", "distance_blocks", "younger_blocks")


class ReuseRow(NamedTuple):
    """A request of the table."""

    prompt_tokens: int
    output_tokens: int
    reuse: Reuse


def read_reuse_rows(path: Path, block_tokens: int) -> list[ReuseRow]:
    """All rows. Raises ScenarioError, which names file, line and column."""
    if not path.exists():
        raise ScenarioError(path, None, "there is no such file of rows")
    return [_row(path, line, cells, block_tokens) for line, cells in read_cells(path, COLUMNS)]


def reuse_rows_csv(rows: Iterable[ReuseRow]) -> str:
    """The file that `read_reuse_rows` reads."""
    lines = (",".join(map(str, (row.prompt_tokens, row.output_tokens, *row.reuse))) for row in rows)
    return "\n".join((",".join(COLUMNS), *lines, ""))


def _row(path: Path, line: int, cells: tuple[str, ...], block_tokens: int) -> ReuseRow:
    prompt, output, blocks, distance, younger = (
        _number(path, line, name, cell) for name, cell in zip(COLUMNS, cells, strict=True)
    )
    for name, tokens in (("prompt_tokens", prompt), ("output_tokens", output)):
        if tokens == 0:
            raise row_error(path, line, name, "0 is out of range: must be at least 1")
    if blocks * block_tokens >= prompt:
        says = f"{blocks} blocks of {block_tokens} leave nothing of a prompt of {prompt} tokens for itself"
        raise row_error(path, line, "reused_blocks", says)
    if younger >= max(blocks, 1):
        raise row_error(path, line, "younger_blocks", f"{younger} must be fewer than the {blocks} that are reused")
    return ReuseRow(prompt, output, Reuse(blocks, distance, younger))


def _number(path: Path, line: int, name: str, cell: str) -> int:
    number = count(cell, path, line, name)
    if number > HIGHEST:
        raise row_error(path, line, name, f"{number} is out of range: must be at most 1,000,000,000")
    return number
