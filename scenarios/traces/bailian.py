"""Reads the Qwen-Bailian traces (alibaba-edu/qwen-bailian-usagetraces-anon): jsonl, times in s, blocks of 16 tokens.

Each row is a turn of a chat and names the one before as `parent_chat_id`. The first turn's id labels the whole chat as
its session; a number a later turn is kept in memory for that. `type` and `turn` are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...policies.core.request import Prompt
from .hash_ids import block_prompt
from .objects import json_object, label
from .reading import read_lines
from .rows import TraceRow, nanoseconds, num_tokens

BLOCK_TOKENS = 16
_NS = 1_000_000_000
_FIELDS = ("chat_id", "parent_chat_id", "timestamp", "input_length", "output_length", "hash_ids")
_FIRST_TURN = (None, "-1", "")
"""What the first turn of a chat names as its parent (the traces write -1)."""


def read_bailian(path: Path) -> Iterator[TraceRow]:
    """The rows in the file's order; ScenarioError names file, line and field."""
    sessions: dict[str, str] = {}  # of later turns: a turn whose parent is not in here follows a first one
    for line, text in read_lines(path):
        fields = json_object(text, path, line, _FIELDS)
        chat = label(fields["chat_id"], path, line, "chat_id")
        parent = label(fields["parent_chat_id"], path, line, "parent_chat_id")
        session = chat
        if parent not in _FIRST_TURN and parent is not None and chat is not None:
            session = sessions[chat] = sessions.get(parent, parent)
        length = num_tokens(fields["input_length"], path, line, "input_length")
        yield TraceRow(
            nanoseconds(fields["timestamp"], _NS, path, line, "timestamp"),
            _prompt(fields["hash_ids"], length, path, line),
            num_tokens(fields["output_length"], path, line, "output_length"),
            session,
        )


def _prompt(ids: object, length: int, path: Path, line: int) -> Prompt:
    return block_prompt(ids, length, BLOCK_TOKENS, path, line)
