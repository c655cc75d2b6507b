"""Conversations: | system prompt | user | answer | user | answer | … | user |, one user message more each turn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..errors import ScenarioError
from ..schema_lengths import MAX_TURNS
from ..schema_sessions import MultiTurnSettings
from .agent import spans
from .draft import Draft, Turn
from .lengths import lengths, max_tokens_for, times_ns


def multi_turn_drafts(asked: MultiTurnSettings, seed: int, contents: Iterator[int]) -> Iterator[Draft]:
    """Sessions without end, each with all of its turns. Raises ScenarioError for a file with too long a session."""
    (system,) = spans(contents, lengths(asked.system_tokens, seed, "system_tokens"), 1)
    pauses = times_ns(asked.think_s, seed, "think_s")
    users = lengths(asked.user_tokens, seed, "user_tokens")
    outputs = lengths(asked.output_tokens, seed, "output_tokens")
    turns = zip(pauses, users, outputs, strict=False)
    return (_session(asked, system, list(islice(_turns(turns), n))) for n in lengths(asked.turns, seed, "turns"))


def _turns(draws: Iterator[tuple[int, int, int]]) -> Iterator[Turn]:
    return (Turn(*draw) for draw in draws)


def _session(asked: MultiTurnSettings, system: tuple[int, int, int], turns: list[Turn]) -> Draft:
    if len(turns) > MAX_TURNS:
        raise ScenarioError(None, "workload.turns", f"{len(turns):,} is out of range: at most {MAX_TURNS:,}")
    first, *later = turns[: _num_fitting(asked, system[2], turns)]
    return Draft((system,), first.own_tokens, first.output_tokens, turns=tuple(later))


def _num_fitting(asked: MultiTurnSettings, context: int, turns: list[Turn]) -> int:
    """Turns that come before the context is too long; the first comes whatever it is."""
    if asked.max_context_tokens is None:
        return len(turns)
    for number, turn in enumerate(turns):
        wanted = max_tokens_for(asked.max_tokens, turn.output_tokens)
        context += turn.own_tokens
        if number and context + wanted > asked.max_context_tokens:
            return number
        context += min(turn.output_tokens, wanted)
    return len(turns)
