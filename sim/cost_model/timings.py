"""Timings of single kernels: what a row of a profile table says, and how tables are read."""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from .header_parts import MOST

Shape = tuple[int, ...]

BY_TOKENS = (
    *("embedding", "norm", "qkv", "qk_norm", "rope", "kv_write", "o", "gate_up", "act", "down", "router"),
    "final_norm",
)
BY_ROWS = ("lm_head", "sampler")
ATTENTION_SHAPE = ("q_tokens", "kv_tokens", "num_decodes", "mean_context", "max_context")
SHAPES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys((*BY_TOKENS, "all_reduce", *BY_ROWS), ("tokens",)),
    "moe": ("tokens", "experts"),
    "attention": ATTENTION_SHAPE,
}
"""The shape columns of each kernel, in order. lm_head and sampler count rows in `tokens`."""
SHAPE_COLUMNS = ("tokens", "experts", *ATTENTION_SHAPE)
REQUIRED_COLUMNS = ("kernel", "tokens", *ATTENTION_SHAPE, "time_us")
COLUMNS = ("kernel", *SHAPE_COLUMNS, "time_us", "repeats", "spread_us")
FILES = ("timings.csv.gz", "timings.csv", "timings.parquet")


class ProfileError(ValueError):
    """A profile or a table that cannot be used, in one line: which file, which row, and why."""


class Timing(NamedTuple):
    """One kernel at one shape."""

    kernel: str
    shape: Shape
    """As `SHAPES` of the kernel orders it."""
    time_us: float
    where: str
    """File and row, for complaints."""
    repeats: int | None = None
    """Measurements behind the time; 0: none, it was derived from other shapes'. None: not recorded."""
    spread_us: float | None = None


def read_timings(folder: Path) -> list[Timing]:
    """The timings of a table; ProfileError names the row at fault. Values are not yet checked against each other."""
    for name in FILES:
        if (path := folder / name).is_file():
            return [_timing(row, where) for where, row in _rows(path)]
    raise ProfileError(f"{folder}: has no {', no '.join(FILES)}")


def csv_rows(path: Path, required: Iterable[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """`(where, row)` of a CSV, gzipped or not; ProfileError where a required column is missing."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            check_columns(path, reader.fieldnames or (), required)
            for number, row in enumerate(reader, 2):
                where = f"{path}: row {number}"
                if None in row or None in row.values():
                    raise ProfileError(f"{where}: has another number of cells than the header")
                yield where, row
    except (UnicodeDecodeError, gzip.BadGzipFile, zlib.error, csv.Error, EOFError) as error:
        raise ProfileError(f"{path}: is not a CSV: {error}") from None
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror or error}") from None


def check_columns(path: Path, columns: Iterable[str], required: Iterable[str]) -> None:
    """ProfileError where a table lacks columns."""
    if missing := [name for name in required if name not in set(columns)]:
        raise ProfileError(f"{path}: column {', '.join(missing)} is missing")


def time_of(row: Mapping[str, Any], column: str, where: str) -> float:
    """A time above zero; ProfileError otherwise."""
    time = _number(row[column])
    if time is None:
        raise ProfileError(f"{where}: {column} is {row[column]!r}, not a number")
    if not 0 < time < math.inf:
        raise ProfileError(f"{where}: {column} is {row[column]}; a time must be above zero")
    return time


def size_of(row: Mapping[str, Any], column: str, where: str) -> int:
    """A whole number from zero to a billion; ProfileError otherwise."""
    size = _number(row[column])
    if size is None or size < 0 or size != size // 1:
        raise ProfileError(f"{where}: {column} is {row[column]!r}; it must be a whole number of at least 0")
    if size > MOST:
        raise ProfileError(f"{where}: {column} is {row[column]}; it must be at most {MOST:,}")
    return int(size)


def _number(cell: object) -> float | None:
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if path.suffix != ".parquet":
        yield from csv_rows(path, REQUIRED_COLUMNS)
        return
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise ProfileError(f"{path}: is not Parquet: {error}") from None
    check_columns(path, table.column_names, REQUIRED_COLUMNS)
    for number, row in enumerate(table.to_pylist(), 1):
        yield f"{path}: row {number}", row


def _timing(row: Mapping[str, Any], where: str) -> Timing:
    kernel = str(row["kernel"])
    if kernel not in SHAPES:
        raise ProfileError(f"{where}: kernel '{kernel}' is unknown; choose {', '.join(SHAPES)}")
    if odd := [name for name in SHAPE_COLUMNS if name not in SHAPES[kernel] and row.get(name) not in ("", None)]:
        raise ProfileError(f"{where}: {kernel} has no {odd[0]}; leave the cell empty")
    if missing := [name for name in SHAPES[kernel] if name not in row]:
        raise ProfileError(f"{where}: {kernel} needs the column {missing[0]}")
    shape = tuple(size_of(row, name, where) for name in SHAPES[kernel])
    repeats = None if row.get("repeats") in ("", None) else size_of(row, "repeats", where)
    spread = None if row.get("spread_us") in ("", None) else _number(row["spread_us"])
    return Timing(kernel, shape, time_of(row, "time_us", where), where, repeats, spread)
