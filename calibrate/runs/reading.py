"""Opens files of measured runs, plain or gzipped, and looks up fields; what is wrong is told by file, row and field."""

from __future__ import annotations

import csv
import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .errors import RunError
from .measured_run import BLOCK_TOKENS

_GZIP_MAGIC = b"\x1f\x8b"
_LATEST_S = 1e11
"""Seconds: clocks of the calendar are below it until the year 5138, those in milliseconds or finer are above."""


def read_text(path: Path) -> str:
    """The whole file, unpacked where it is a gzip; RunError where it cannot be read or holds nothing."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw.startswith(_GZIP_MAGIC) else raw).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RunError(path, None, f"byte 0x{error.object[error.start]:02x} at {error.start} is not UTF-8") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RunError(path, None, f"the gzip is truncated or damaged: {error}") from None
    except OSError as error:
        raise RunError(path, None, f"cannot be read: {error.strerror}") from None
    if not text.strip():
        raise RunError(path, None, "is empty")
    return text


def read_json(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds."""
    return _object(read_text(path), path, None)


def read_json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """`(line 17, its object)` for each line that is not blank."""
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip():
            yield f"line {number}", _object(line, path, f"line {number}")


def read_table(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    """`(line 17, its cells by column)` for each row of a CSV that must have the columns `needed`."""
    lines = csv.reader(read_text(path).splitlines())
    columns = [name.strip() for name in next(lines)]
    if missing := [name for name in needed if name not in columns]:
        raise RunError(path, None, f"column {missing[0]} is missing; there are {', '.join(columns)}")
    for cells in lines:
        if len(cells) != len(columns) and cells:
            says = f"has {len(cells)} cells, but there are {len(columns)} columns"
            raise RunError(path, f"line {lines.line_num}", says)
        if cells:
            yield f"line {lines.line_num}", dict(zip(columns, (cell.strip() for cell in cells), strict=True))


def _object(text: str, path: Path, where: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RunError(path, where, f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise RunError(path, where, f"must be a JSON object, not {_shown(value)}")
    return value


class Row:
    """The fields of one row, looked up with checks."""

    def __init__(self, path: Path, where: str, fields: Mapping[str, Any]) -> None:
        self.path = path
        self.where = where
        self.fields = fields

    def error(self, name: str | None, message: str) -> RunError:
        """What is wrong with this row, or one field of it."""
        return RunError(self.path, f"{self.where}: {name}" if name else self.where, message)

    def tokens(self, name: str) -> int:
        """A whole number of tokens, at least 0."""
        value = self._value(name)
        number = _number(value)
        if number is None or number != int(number) or number < 0:
            raise self.error(name, f"must be a whole number of tokens, not {_shown(value)}")
        return int(number)

    def seconds(self, name: str) -> float:
        """A time in seconds on whatever clock."""
        value = self._value(name)
        number = _number(value)
        if number is None or abs(number) > _LATEST_S:
            raise self.error(name, f"must be a number of seconds, not {_shown(value)}")
        return number

    def seconds_if_given(self, name: str) -> float | None:
        """The same, None where it is left out."""
        return None if self.fields.get(name) in (None, "") else self.seconds(name)

    def label(self, name: str) -> str:
        """A name."""
        value = self._value(name)
        if not isinstance(value, str | int) or not str(value).isprintable() or value == "":
            raise self.error(name, f"must be printable text, not {_shown(value)}")
        return str(value)

    def _value(self, name: str) -> Any:
        if self.fields.get(name) is None:
            raise self.error(name, "is missing")
        return self.fields[name]


def _number(value: object) -> float | None:
    """A finite number, given as one or as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _shown(value: object) -> str:
    text = json.dumps(value) if isinstance(value, dict | list | str | int | float | bool | None) else repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def block_ids(row: Row, name: str, num_tokens: int) -> tuple[int, ...] | None:
    """Names of a prompt's blocks of 16 tokens, the last one partial; None where the field is left out."""
    ids = row.fields.get(name)
    if ids in (None, ""):
        return None
    if isinstance(ids, str):
        ids = [int(part) if part.isdigit() else part for part in ids.split()]
    if not isinstance(ids, list) or any(type(content) is not int or content < 0 for content in ids):
        raise row.error(name, f"must be whole numbers from 0, not {_shown(ids)}")
    if len(ids) != -(-num_tokens // BLOCK_TOKENS):
        needed = -(-num_tokens // BLOCK_TOKENS)
        says = f"has {len(ids)} ids, but {num_tokens} tokens in blocks of {BLOCK_TOKENS} need {needed}"
        raise row.error(name, says)
    return tuple(ids)
