"""The name spaces of content ids: two spans share tokens only where they are meant to.

    shared by requests     0, 1, 2, …          an agent's parts, a trace's own hash ids as they stand
    a request's output     -1, -2, … -2^40     one a request
    a request's own prompt below -2^40         one a request

No id of one space can equal one of another, whatever hash ids a trace brings: readers refuse negative ones.
"""

from __future__ import annotations

_OUTPUTS = 2**40


def output_content(index: int) -> int:
    """What request `index` generates."""
    return -(index + 1)


def unique_prompt(index: int) -> int:
    """The part of a prompt that request `index` alone has."""
    return -(_OUTPUTS + index + 1)
