"""Reads numbers from a file: one number a line, or a column of a CSV whose first line names the columns."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import ScenarioError
from ..traces.reading import read_lines

HIGHEST = 10**9


def read_numbers(path: Path, column: str | None, lowest: int = 1) -> npt.NDArray[np.int64]:
    """All the numbers, each from `lowest` to 10^9. Raises ScenarioError, which names file, line and column."""
    rows = _cells(path, column) if column is not None else read_lines(path)
    where = f": {column}" if column is not None else ""
    numbers = np.fromiter((_number(path, f"line {line}{where}", text, lowest) for line, text in rows), dtype=np.int64)
    if not len(numbers):
        raise ScenarioError(path, None, "has no line beneath the one that names the columns")
    return numbers


def _number(path: Path, where: str, text: str, lowest: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    if not lowest <= number <= HIGHEST:
        raise ScenarioError(path, where, f"{text[:60]!r} is not a whole number from {lowest} to 1,000,000,000")
    return number


def _cells(path: Path, column: str) -> Iterator[tuple[int, str]]:
    lines = read_lines(path)
    line, header = next(lines)
    names = _fields(path, line, header)
    if column not in names:
        raise ScenarioError(path, f"line {line}", f"has no column '{column}'; choose {', '.join(names)}")
    position = names.index(column)
    for line, text in lines:
        fields = _fields(path, line, text)
        if position >= len(fields):
            raise ScenarioError(path, f"line {line}: {column}", "is missing: the line is too short")
        yield line, fields[position]


def _fields(path: Path, line: int, text: str) -> list[str]:
    try:
        return [field.strip() for field in next(csv.reader([text], strict=True))]
    except csv.Error as error:
        raise ScenarioError(path, f"line {line}", f"is not CSV: {error}") from None
