"""Tells a trace's format from its first line, where that leaves no doubt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import ScenarioError
from . import mooncake
from .formats import DEFAULT_BLOCK_TOKENS
from .reading import read_lines

_CSV_COLUMNS = {"azure": ("TIMESTAMP", "ContextTokens"), "burstgpt": ("Timestamp", "Request tokens")}
_JSON_FIELDS = {"bailian": ("chat_id", "hash_ids"), "custom": ("prompt",), "sharegpt": ("conversations",)}


def guess_format(path: Path) -> str:
    """The format's name. Raises ScenarioError where the file is none, or its first line fits no format or several."""
    _, line = next(read_lines(path))
    found = _of_json(line) if line.startswith(("{", "[")) else _of_header(line)
    if found is None:
        raise ScenarioError(path, "line 1", "does not tell the trace's format; name it with --format")
    return found


def _of_header(line: str) -> str | None:
    names = {name.strip() for name in line.split(",")}
    return next((form for form, columns in _CSV_COLUMNS.items() if names.issuperset(columns)), None)


def _of_json(line: str) -> str | None:
    try:
        first = json.loads(line.rstrip(","))
    except (ValueError, RecursionError):
        return None
    if not isinstance(first, dict):
        return None
    found = next((form for form, fields in _JSON_FIELDS.items() if first.keys() >= set(fields)), None)
    return found or _by_block(first)


def _by_block(first: dict[str, Any]) -> str | None:
    """Mooncake's and plain hash ids differ in the size of a block alone."""
    ids, length = first.get("hash_ids"), first.get("input_length")
    if not isinstance(ids, list) or type(length) is not int:
        return None
    sizes = {"mooncake": mooncake.BLOCK_TOKENS, "hash_ids": DEFAULT_BLOCK_TOKENS}
    fitting = [form for form, size in sizes.items() if -(-length // size) == len(ids)]
    return fitting[0] if len(fitting) == 1 else None
