"""Reads the Mooncake traces (kvcache-ai/Mooncake, FAST25-release): blocks of 512 tokens, times in ms.

Times are kept as given; those of the conversation trace come in ticks of about 3 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .hash_ids import read_hash_ids
from .rows import TraceRow

BLOCK_TOKENS = 512


def read_mooncake(path: Path) -> Iterator[TraceRow]:
    """The rows in the file's order; ScenarioError names file, line and field."""
    return read_hash_ids(path, BLOCK_TOKENS)
