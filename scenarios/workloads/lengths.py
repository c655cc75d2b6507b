"""Draws numbers of tokens and times, and what a client asks for given what it will get."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import repeat
from typing import Literal

from ..schema_lengths import EmpiricalLength, ExponentialTime, Length, Time, UniformLength
from ..schema_pacing import FactorMaxTokens, FixedMaxTokens
from .draws import exponentials, log_normals, picks, whole_numbers
from .number_files import read_numbers


def lengths(length: Length, seed: int, purpose: str) -> Iterator[int]:
    """Numbers of tokens, each at least 1, without end. Raises ScenarioError for a file that is not one of lengths."""
    if isinstance(length, int):
        return repeat(length)
    if isinstance(length, UniformLength):
        return whole_numbers(seed, purpose, length.uniform.min, length.uniform.max)
    if isinstance(length, EmpiricalLength):
        return picks(seed, purpose, read_numbers(length.empirical.file, length.empirical.column))
    spec = length.lognormal
    draws = log_normals(seed, purpose, spec.mean, spec.cv)
    if spec.max is None:
        return (round(draw) or 1 for draw in draws)
    highest = spec.max
    return (min(round(draw) or 1, highest) for draw in draws)


def times_ns(time: Time, seed: int, purpose: str) -> Iterator[int]:
    """Times in nanoseconds, without end."""
    if isinstance(time, float | int):
        return repeat(round(time * 1e9))
    if isinstance(time, ExponentialTime):
        mean_ns = time.exponential * 1e9
        return (round(draw * mean_ns) for draw in exponentials(seed, purpose))
    spec = time.lognormal
    return (round(draw * 1e9) for draw in log_normals(seed, purpose, spec.mean, spec.cv))


def max_tokens_for(rule: Literal["exact"] | FixedMaxTokens | FactorMaxTokens, output_tokens: int) -> int:
    """What a client asks for that will generate `output_tokens`, if the limit allows."""
    if isinstance(rule, FixedMaxTokens):
        return rule.fixed
    if isinstance(rule, FactorMaxTokens):
        return math.ceil(round(rule.factor * output_tokens, 6))  # 1.1 x 10 is 11, not 11.000000000000002
    return output_tokens
