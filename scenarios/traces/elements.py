"""Streams the objects of a JSON file: an array of them, or one after another, as jsonl has it.

The file is never whole in memory, only the object being read; one of more than 64 Mi characters is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..complaints import shown
from ..errors import ScenarioError
from .reading import read_chunks

_MAX_CHARS = 1 << 26
_BETWEEN = re.compile(r"[\s,]*")
_MARGIN = 16
"""A complaint of the parser this close to the end of what was read may be about a word that goes on."""


def read_elements(path: Path, noun: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """`(number from 1, object)`. Raises ScenarioError, naming file and object (`noun 3`), where one is broken."""
    text = _Text(path)
    is_array = text.skip("[")
    number = 0
    while text.next_char() not in ("", "]" if is_array else ""):
        number += 1
        yield number, text.take_object(number, noun)
    if is_array and not text.skip("]"):
        raise element_error(path, number + 1, noun, "is missing: the file ends inside the array")
    if text.next_char():
        raise ScenarioError(path, None, f"goes on after the end of the array: {shown(text.rest())}")
    if number == 0:
        raise ScenarioError(path, None, "the trace is empty")


def element_error(path: Path, number: int, noun: str, message: str) -> ScenarioError:
    """What is wrong with one object of the file."""
    return ScenarioError(path, f"{noun} {number}", message)


class _Text:
    """The part of the file that is in memory, and where in it the next object begins."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chunks = read_chunks(path)
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._at = 0
        self._ended = False

    def next_char(self) -> str:
        """The next character that is neither space nor comma; empty at the end of the file."""
        while True:
            between = _BETWEEN.match(self._text, self._at)
            assert between is not None
            self._at = between.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def skip(self, char: str) -> bool:
        """Step over `char` if it is the next."""
        found = self.next_char() == char
        self._at += found
        return found

    def rest(self) -> str:
        """The beginning of what is left."""
        return self._text[self._at : self._at + 40]

    def take_object(self, number: int, noun: str) -> dict[str, Any]:
        """The object that begins here."""
        if self.next_char() != "{":
            raise element_error(self._path, number, noun, f"must be an object, not {shown(self.rest())}")
        while True:
            try:
                value, self._at = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if not self._may_go_on(error):
                    says = error.msg if isinstance(error, json.JSONDecodeError) else error
                    raise element_error(self._path, number, noun, f"is not JSON: {says}") from None
            else:
                assert isinstance(value, dict)
                return value

    def _may_go_on(self, error: Exception) -> bool:
        """Whether the object may be right with more of the file; reads as much again as there is of it."""
        if not isinstance(error, json.JSONDecodeError):
            return False
        cut = error.msg.startswith("Unterminated string") or error.pos > len(self._text) - _MARGIN
        wanted = 2 * (len(self._text) - self._at)
        if not cut or wanted > 2 * _MAX_CHARS or not self._more():
            return False
        while len(self._text) - self._at < wanted and self._more():
            pass
        return True

    def _more(self) -> bool:
        """Read a chunk; what lies behind is let go."""
        chunk = "" if self._ended else next(self._chunks, "")
        self._ended = not chunk
        self._text, self._at = self._text[self._at :] + chunk, 0
        return not self._ended
