"""The name spaces of content ids: two spans share tokens only where they are meant to.

    shared by requests     0, 1, 2, …          a generator's shared parts, a trace's own hash ids as they stand
    a request's output     -1, -2, … -2^60     one a request
    a request's own prompt below -2^60         one a request

No id of one space can equal one of another, whatever hash ids a trace brings: readers refuse negative ones.

Later turns of a session and retries are requests too, and what is put out in them is their own: for turn t and retry r
of request i the number is i + (t + 1024 r) x 2^30. A retry's prompt is that of the request that it repeats.
"""

from __future__ import annotations

_OUTPUTS = 2**60
_TURN = 2**30
_RETRY = 2**40


def output_content(index: int, turn: int = 0, retry: int = 0) -> int:
    """What request `index` generates."""
    return -(index + turn * _TURN + retry * _RETRY + 1)


def unique_prompt(index: int, turn: int = 0) -> int:
    """The part of a prompt that request `index` alone has."""
    return -(_OUTPUTS + index + turn * _TURN + 1)
