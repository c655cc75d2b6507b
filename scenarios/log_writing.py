"""Writes a decision log into a file that appears only when it is whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .case_reading import CaseError


def write_log(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """One JSON object a line. A device or a pipe is written to as it is; raises CaseError where that fails."""
    if path.is_dir():
        raise CaseError(f"{path}: cannot be written: it is a folder")
    if path.exists() and not path.is_file():
        _write(path, lines, path)
        return
    target = path.resolve()  # a link stays a link
    partial = target.with_name(f".{target.name}.partial")
    try:
        _write(partial, lines, path)
        partial.replace(target)
    finally:
        with suppress(OSError):  # it is gone: renamed, or never made
            partial.unlink()


def _write(path: Path, lines: Iterable[Mapping[str, Any]], named: Path) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
    except OSError as error:
        raise CaseError(f"{named}: cannot be written: {error.strerror}") from None
