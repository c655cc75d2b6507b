"""Reads one JSON object a line and looks up its fields; what is wrong is told by line and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..complaints import shown
from .rows import row_error


def json_object(text: str, path: Path, line: int, fields: tuple[str, ...]) -> dict[str, Any]:
    """The object of one line, which must hold `fields`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise row_error(path, line, None, f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise row_error(path, line, None, f"must be an object with {', '.join(fields)}, not {shown(value)}")
    for field in fields:
        if field not in value:
            raise row_error(path, line, field, "is missing")
    return value


def label(value: object, path: Path, line: int, field: str) -> str | None:
    """A name that people will read, given as text or as a whole number; None stays None."""
    if isinstance(value, str):
        if not value.isprintable():
            raise row_error(path, line, field, f"must be printable text, not {value!a}")
        return value
    if value is None:
        return None
    if type(value) is int:
        return str(value)
    raise row_error(path, line, field, f"must be text or a whole number, not {shown(value)}")


def text_of(value: object, path: Path, line: int, field: str) -> str:
    """A field that must be text."""
    if isinstance(value, str):
        return value
    raise row_error(path, line, field, f"must be text, not {shown(value)}")
