"""Opens a trace, plain or gzipped (told by its first bytes, not its name), and streams its lines or its text."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..errors import ScenarioError
from .rows import row_error

_GZIP_MAGIC = b"\x1f\x8b"
_BOM = "\ufeff"


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """`(line number from 1, text without its line end)`; blank lines are left out.

    Raises ScenarioError, naming file and line, where the file is missing, unreadable, empty, not UTF-8, or
    a gzip that breaks off.
    """
    line, empty = 0, True
    _check_regular(path)
    try:
        with path.open("rb") as file:
            for raw in _unpacked(file):
                line += 1
                text = _decoded(raw, path, line)
                if text:
                    empty = False
                    yield line, text
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise row_error(path, line + 1, None, f"the gzip is truncated or damaged: {error}") from None
    except OSError as error:
        raise ScenarioError(path, None, f"the trace cannot be read: {error.strerror}") from None
    if empty:
        raise ScenarioError(path, None, "the trace is empty")


def read_chunks(path: Path, num_bytes: int = 1 << 16) -> Iterator[str]:
    """The file's text in pieces that are not empty. Raises ScenarioError as `read_lines` does, without a line."""
    _check_regular(path)
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    done = 0
    try:
        with path.open("rb") as file:
            unpacked = _unpacked(file)
            while raw := unpacked.read(num_bytes):
                if text := decoder.decode(raw):
                    yield text
                done += len(raw)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        says = f"byte 0x{error.object[error.start]:02x} near offset {done + error.start} is not UTF-8"
        raise ScenarioError(path, None, says) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ScenarioError(path, None, f"the gzip is truncated or damaged: {error}") from None
    except OSError as error:
        raise ScenarioError(path, None, f"the trace cannot be read: {error.strerror}") from None


def _check_regular(path: Path) -> None:
    """A trace is read more than once, so it cannot be a pipe."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ScenarioError(path, None, "the trace is not a regular file")


def _unpacked(file: BinaryIO) -> BinaryIO:
    """The file, unpacked where it is a gzip."""
    head = file.read(2)
    file.seek(0)
    if head != _GZIP_MAGIC:
        return file
    return io.BufferedReader(gzip.GzipFile(fileobj=file))


def _decoded(raw: bytes, path: Path, line: int) -> str:
    try:
        text = raw.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise row_error(path, line, None, f"byte 0x{raw[error.start]:02x} is not UTF-8") from None
    return text.removeprefix(_BOM) if line == 1 else text
