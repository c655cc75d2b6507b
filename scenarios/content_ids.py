"""The name spaces of content ids: two spans share tokens only where they are meant to.

    shared by requests     0, 1, 2, …          a generator's shared parts, a trace's own hash ids as they stand
    a request's output     -1, -2, … -2^40     one a request
    a request's own prompt below -2^40         one a request

No id of one space can equal one of another, whatever hash ids a trace brings: readers refuse negative ones.

A session's later turns are requests too: turn t of session i is number i + t x 2^30, below 2^40 for up to 1,024 turns.
"""

from __future__ import annotations

_OUTPUTS = 2**40
_TURNS = 2**30


def output_content(index: int, turn: int = 0) -> int:
    """What request `index` generates."""
    return -(index + turn * _TURNS + 1)


def unique_prompt(index: int, turn: int = 0) -> int:
    """The part of a prompt that request `index` alone has."""
    return -(_OUTPUTS + index + turn * _TURNS + 1)
