"""Reads ShareGPT conversations: a JSON array (or jsonl) of `id` and `conversations`, turns of `from` and `value`.

A conversation is a session: each answer is a request whose prompt is all that was said before, earlier answers
included as what the requests before have generated, so that a prefix cache can hit them. The next turn follows when
the answer has come. There are no times, so the scenario's `rate` says how many conversations begin a second, and
lengths are estimates (`text.py`). Where an output limit cuts an answer, later turns hold it whole all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...policies.core.request import Prompt
from ..complaints import shown
from ..content_ids import output_content
from .elements import element_error, read_elements
from .sessions import Call, TraceSession
from .text import TextPrompt, estimated_tokens

_NOUN = "conversation"
_ANSWERING = frozenset({"gpt", "chatgpt", "assistant", "bing", "bard", "model"})
_ASKING = frozenset({"human", "user", "system", "tool", "function"})


def read_sharegpt(path: Path, chars_per_token: float) -> Iterator[TraceSession]:
    """The conversations in the file's order; ScenarioError names file, conversation and turn.

    One without an answer to a question has no calls.
    """
    first_index = 0
    for number, fields in read_elements(path, _NOUN):
        name = fields.get("id")
        if not isinstance(name, str | int | None) or not str(name).isprintable():
            raise element_error(path, number, _NOUN, f"id: must be printable text or a number, not {shown(name)}")
        turns = _turns(fields, path, number)
        session = TraceSession(None if name is None else str(name), first_index, [])
        session.calls.extend(_calls(turns, first_index, chars_per_token))
        yield session
        first_index += len(session.calls)


def _calls(turns: list[tuple[bool, str]], first_index: int, chars_per_token: float) -> Iterator[Call]:
    """A call for each answer to something; an answer to nothing is part of what was said."""
    said, asked, num_calls = TextPrompt(chars_per_token), False, 0
    for is_answer, text in turns:
        if not (is_answer and asked):
            said.add_text(text)
            asked = not is_answer
            continue
        num_tokens = estimated_tokens(text, chars_per_token)
        yield Call(Prompt(said.spans), num_tokens, ((num_calls - 1, 0),) if num_calls else ())
        said.add_answer(output_content(first_index + num_calls), num_tokens)
        num_calls, asked = num_calls + 1, False


def _turns(fields: dict[str, Any], path: Path, number: int) -> list[tuple[bool, str]]:
    """`(whether it is an answer, its text)` for each turn."""
    turns = fields.get("conversations")
    if not isinstance(turns, list):
        says = "is missing" if "conversations" not in fields else f"must be a list of turns, not {shown(turns)}"
        raise element_error(path, number, _NOUN, f"conversations: {says}")
    return [_turn(turn, path, number, place) for place, turn in enumerate(turns, start=1)]


def _turn(turn: object, path: Path, number: int, place: int) -> tuple[bool, str]:
    speaker, text = (turn.get("from"), turn.get("value")) if isinstance(turn, dict) else (None, None)
    if not isinstance(speaker, str) or speaker not in _ANSWERING | _ASKING:
        known = ", ".join(sorted(_ANSWERING | _ASKING))
        raise element_error(path, number, _NOUN, f"turn {place}: from: {shown(speaker)} is unknown; choose {known}")
    if not isinstance(text, str):
        raise element_error(path, number, _NOUN, f"turn {place}: value: must be text, not {shown(text)}")
    return speaker in _ANSWERING, text
