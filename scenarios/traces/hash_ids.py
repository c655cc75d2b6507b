"""Reads jsonl traces whose prompts are chains of block ids: `timestamp` in ms, lengths, `hash_ids`.

A row's `hash_ids` holds ceil(input_length / block) ids, the last block partial; each id stands for a
block's tokens together with all before it, so equal ids are equal prefixes. A `session` is kept as a label;
other fields are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...policies.core.request import Prompt
from ..complaints import shown
from .objects import json_object, label
from .reading import read_lines
from .rows import TraceRow, nanoseconds, num_tokens, row_error

_MS = 1_000_000
_FIELDS = ("timestamp", "input_length", "output_length", "hash_ids")


def read_hash_ids(path: Path, block_tokens: int) -> Iterator[TraceRow]:
    """The rows in the file's order; ScenarioError names file, line and field."""
    for line, text in read_lines(path):
        fields = json_object(text, path, line, _FIELDS)
        length = num_tokens(fields["input_length"], path, line, "input_length")
        yield TraceRow(
            nanoseconds(fields["timestamp"], _MS, path, line, "timestamp"),
            block_prompt(fields["hash_ids"], length, block_tokens, path, line),
            num_tokens(fields["output_length"], path, line, "output_length"),
            label(fields.get("session"), path, line, "session"),
        )


def block_prompt(ids: object, length: int, block_tokens: int, path: Path, line: int) -> Prompt:
    """One span a block, the last as long as what is left."""
    if not isinstance(ids, list) or any(type(content) is not int for content in ids):
        raise row_error(path, line, "hash_ids", f"must be a list of whole numbers, not {shown(ids)}")
    expected = -(-length // block_tokens)
    if len(ids) != expected:
        says = f"has {len(ids)} ids, but {length} tokens in blocks of {block_tokens} need {expected}"
        raise row_error(path, line, "hash_ids", says)
    if not ids:
        return Prompt()
    if min(ids) < 0:
        raise row_error(path, line, "hash_ids", f"{min(ids)} is out of range: must be at least 0")
    spans = [(content, 0, block_tokens) for content in ids]
    spans[-1] = (ids[-1], 0, length - (expected - 1) * block_tokens)
    return Prompt(spans)
