"""Reads agent sessions in the WEKA form (callanjfox/kv-cache-tester): `requests` of `t`, `in`, `out`, `hash_ids`.

A file holds one session, or many as jsonl or an array. A session's calls follow one another:

    call 1 --think--> call 2 -+-> sub-agent a: call, call, … -+-> call 3 --think--> …
                              +-> sub-agent b: call, …       -+

An entry of `type: subagent` holds requests of its own, nested to any depth. It begins as long after the call before it
as was recorded, sub-agents side by side where the session makes no call in between; the next call waits for them all,
and for its `think_time` (in s, since the end of the call before). Where that is missing it is what `t` and `api_time`
leave over. Recorded service times are not replayed: the engine takes its own. All calls go to one model, whatever
`model` they name. The scenario's `rate` says how many sessions begin a second.

`hash_ids` are blocks of `block_size` (64) tokens. Unless `hash_id_scope` is `global` they mean something within their
session alone. Tokens of a prompt that no id names are its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...policies.core.request import Prompt
from ..complaints import shown
from ..content_ids import unique_prompt
from ..errors import ScenarioError
from .elements import element_error, read_elements
from .rows import nanoseconds_of, tokens_of
from .sessions import Call, TraceSession

BLOCK_TOKENS = 64
_NS = 1_000_000_000
_NOUN = "session"
_MAX_DEPTH = 50
_MAX_ID = 2**32


def read_weka(path: Path) -> Iterator[TraceSession]:
    """The sessions in the file's order; ScenarioError names file, session, request and field."""
    first_index = 0
    for number, fields in read_elements(path, _NOUN):
        calls = _Session(path, number, fields, first_index).calls
        name = fields.get("id")
        yield TraceSession(f"session-{number}" if name is None else _name(name, path, number), first_index, calls)
        first_index += len(calls)


def _name(value: object, path: Path, number: int) -> str:
    if isinstance(value, str | int) and str(value).isprintable():
        return str(value)
    raise element_error(path, number, _NOUN, f"id: must be printable text or a number, not {shown(value)}")


class _Session:
    """Turns the entries of one session into calls, depth first."""

    def __init__(self, path: Path, number: int, fields: dict[str, Any], first_index: int) -> None:
        self._path = path
        self._number = number
        self._first_index = first_index
        self._place = 0  # of the entry being read, from 1, sub-agents' counted as they come
        self._block_tokens = fields.get("block_size", BLOCK_TOKENS)
        if type(self._block_tokens) is not int or not 1 <= self._block_tokens <= 10**6:
            raise self._session_error(f"block_size: must be a whole number from 1, not {shown(self._block_tokens)}")
        scope = fields.get("hash_id_scope", "local")
        if scope not in ("local", "global"):
            raise self._session_error(f"hash_id_scope: {shown(scope)} is unknown; choose global, local")
        self._first_content = 0 if scope == "global" else number * _MAX_ID
        self.calls: list[Call] = []
        self._add_chain(fields.get("requests"), (), 0)

    def _add_chain(self, entries: object, start: tuple[tuple[int, int], ...], depth: int) -> list[int]:
        """Add calls one after another, the first after `start`; returns those that nothing in it waits for."""
        if not isinstance(entries, list):
            raise self._session_error(f"requests: must be a list of requests, not {shown(entries)}")
        if depth > _MAX_DEPTH:
            raise self._session_error(f"sub-agents are nested more than {_MAX_DEPTH} deep")
        last: int | None = None
        ended_ns = 0  # when the last call had ended, as recorded
        agents: list[int] = []  # what the sub-agents since then end with
        for entry in entries:
            self._place += 1
            if not isinstance(entry, dict):
                raise self._error(f"must be an object, not {shown(entry)}")
            begun_ns = self._ns(entry, "t")
            since_ns = max(0, begun_ns - ended_ns)
            if entry.get("type") == "subagent":
                begin = start if last is None else ((last, since_ns),)
                agents += self._add_chain(entry.get("requests"), begin, depth + 1)
                continue
            think_ns = since_ns if entry.get("think_time") is None else self._ns(entry, "think_time")
            before = start if last is None else ((last, think_ns),)
            last = self._add_call(entry, before + tuple((agent, 0) for agent in agents))
            agents = []
            ended_ns = begun_ns + (0 if entry.get("api_time") is None else self._ns(entry, "api_time"))
        return agents if agents or last is None else [last]

    def _add_call(self, entry: dict[str, Any], after: tuple[tuple[int, int], ...]) -> int:
        length = self._tokens(entry, "in")
        prompt = self._prompt(self._field(entry, "hash_ids"), length)
        self.calls.append(Call(prompt, self._tokens(entry, "out"), after))
        return len(self.calls) - 1

    def _prompt(self, ids: object, length: int) -> Prompt:
        if not isinstance(ids, list) or any(type(content) is not int for content in ids):
            raise self._error(f"hash_ids: must be a list of whole numbers, not {shown(ids)}")
        size, most = self._block_tokens, -(-length // self._block_tokens)
        if len(ids) > most:
            raise self._error(f"hash_ids: has {len(ids)} ids, but {length} tokens in blocks of {size} are {most}")
        if ids and not (min(ids) >= 0 and max(ids) < _MAX_ID):
            raise self._error("hash_ids: an id is out of range: must be at least 0, below 2^32")
        spans = [(self._first_content + content, 0, size) for content in ids]
        if len(ids) == most and ids:
            spans[-1] = (spans[-1][0], 0, length - (most - 1) * size)
        own = (unique_prompt(self._first_index + len(self.calls)), 0, length - min(length, len(ids) * size))
        return Prompt([*spans, own])

    def _ns(self, entry: dict[str, Any], field: str) -> int:
        return nanoseconds_of(self._field(entry, field), _NS, lambda says: self._error(f"{field}: {says}"))

    def _tokens(self, entry: dict[str, Any], field: str) -> int:
        return tokens_of(self._field(entry, field), lambda says: self._error(f"{field}: {says}"))

    def _field(self, entry: dict[str, Any], field: str) -> object:
        if field not in entry:
            raise self._error(f"{field}: is missing")
        return entry[field]

    def _error(self, message: str) -> ScenarioError:
        return self._session_error(f"request {self._place}: {message}")

    def _session_error(self, message: str) -> ScenarioError:
        return element_error(self._path, self._number, _NOUN, message)
