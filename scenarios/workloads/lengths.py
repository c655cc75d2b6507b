"""Draws numbers of tokens, fixed or log-normal, and what a client asks for given what it will get."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import repeat
from typing import Literal

from ..schema_workload import FactorMaxTokens, FixedMaxTokens, LogNormalLength
from .draws import log_normals


def lengths(length: int | LogNormalLength, seed: int, purpose: str) -> Iterator[int]:
    """Numbers of tokens, each at least 1, without end."""
    if isinstance(length, int):
        return repeat(length)
    spec = length.lognormal
    draws = log_normals(seed, purpose, spec.mean, spec.cv)
    if spec.max is None:
        return (round(draw) or 1 for draw in draws)
    highest = spec.max
    return (min(round(draw) or 1, highest) for draw in draws)


def max_tokens_for(rule: Literal["exact"] | FixedMaxTokens | FactorMaxTokens, output_tokens: int) -> int:
    """What a client asks for that will generate `output_tokens`, if the limit allows."""
    if isinstance(rule, FixedMaxTokens):
        return rule.fixed
    if isinstance(rule, FactorMaxTokens):
        return math.ceil(round(rule.factor * output_tokens, 6))  # 1.1 x 10 is 11, not 11.000000000000002
    return output_tokens
