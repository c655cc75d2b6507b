"""Which reader goes with which format, and what a format tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from . import bailian, mooncake
from .azure import read_azure
from .bailian import read_bailian
from .burstgpt import read_burstgpt
from .custom import read_custom
from .hash_ids import read_hash_ids
from .mooncake import read_mooncake
from .rows import TraceRow
from .sessions import TraceSession
from .sharegpt import read_sharegpt
from .text import CHARS_PER_TOKEN, PIECE_TOKENS
from .weka import read_weka

if TYPE_CHECKING:
    from ..schema_workload import TraceSettings

DEFAULT_BLOCK_TOKENS = 16
"""vLLM's block, and that of the LMCache agent trace."""
DATED = frozenset({"azure"})
"""Formats whose times are those of the calendar: the earliest row is time 0."""


def reader(settings: TraceSettings) -> Callable[[Path], Iterator[TraceRow]]:
    """What reads the rows of the settings' format, one that is not of `SESSION_FORMATS`."""
    match settings.format:
        case "azure":
            return read_azure
        case "bailian":
            return read_bailian
        case "burstgpt":
            return read_burstgpt
        case "custom":
            return partial(read_custom, chars_per_token=settings.chars_per_token or CHARS_PER_TOKEN)
        case "hash_ids":
            return partial(read_hash_ids, block_tokens=settings.block_tokens or DEFAULT_BLOCK_TOKENS)
        case "mooncake":
            return read_mooncake
        case "sharegpt" | "weka":
            raise ValueError(f"{settings.format} has sessions, not rows")


def session_reader(settings: TraceSettings) -> Callable[[Path], Iterator[TraceSession]]:
    """What reads the sessions of the settings' format, one of `SESSION_FORMATS`."""
    if settings.format == "weka":
        return read_weka
    return partial(read_sharegpt, chars_per_token=settings.chars_per_token or CHARS_PER_TOKEN)


def block_tokens_of(settings: TraceSettings) -> int:
    """Tokens of the pieces by which prompts of that format, one that is not of `SESSION_FORMATS`, are shared."""
    match settings.format:
        case "mooncake":
            return mooncake.BLOCK_TOKENS
        case "bailian":
            return bailian.BLOCK_TOKENS
        case "custom":
            return PIECE_TOKENS
        case _:  # of the others, hash_ids alone shares anything
            return settings.block_tokens or DEFAULT_BLOCK_TOKENS
