"""Distributions that a workload's keys can be: numbers of tokens, numbers of turns, times."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Discriminator, Field, PrivateAttr, Tag, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from .section import PositiveSeconds, Seconds, Section

NumTokens = Annotated[int, Field(ge=1, le=10**9)]

MAX_TURNS = 1000
"""Of a session: what tells its requests' contents apart."""


class LogNormal(Section):
    """Lengths whose logarithm is normal, given by their mean and coefficient of variation.

    A draw is rounded to whole tokens, at least 1; one above `max` becomes `max`, which lowers the mean.
    """

    mean: Annotated[float, Field(ge=1, le=1e9)]
    cv: Annotated[float, Field(ge=0, le=100)]
    max: NumTokens | None = None

    @model_validator(mode="after")
    def _mean_is_below_max(self) -> Self:
        if self.max is not None and self.max < self.mean:
            raise PydanticCustomError("range", f"max {self.max} is below the mean {self.mean:g}")
        return self


class Uniform(Section):
    """Every whole number from `min` to `max`, both included, equally often."""

    min: NumTokens
    max: NumTokens

    @model_validator(mode="after")
    def _min_is_not_above_max(self) -> Self:
        if self.min > self.max:
            raise PydanticCustomError("range", f"min {self.min} is above max {self.max}")
        return self


class FileBeside(Section):
    """A file of which the YAML gives the path."""

    path: Annotated[str, Field(min_length=1)]
    """Relative to the folder of the YAML; plain or gzipped."""

    _folder: Path = PrivateAttr(default=Path())

    @model_validator(mode="after")
    def _remember_the_folder(self, info: ValidationInfo) -> Self:
        self._folder = (info.context or {}).get("folder", Path())
        return self

    @property
    def file(self) -> Path:
        """Where it is."""
        return self._folder / self.path


class Empirical(FileBeside):
    """Numbers from a file, each as likely as it is frequent there: one a line, or a column of a CSV with a header."""

    column: Annotated[str, Field(min_length=1)] | None = None
    """Of a CSV; without it, one number a line."""


_SHAPES = ("lognormal", "uniform", "empirical")


class LogNormalLength(Section):
    """`{lognormal: {mean: 300, cv: 1.0, max: 4096}}`."""

    siblings: ClassVar = _SHAPES

    lognormal: LogNormal


class UniformLength(Section):
    """`{uniform: {min: 100, max: 200}}`."""

    siblings: ClassVar = _SHAPES

    uniform: Uniform


class EmpiricalLength(Section):
    """`{empirical: {path: lengths.csv, column: prompt_tokens}}`."""

    siblings: ClassVar = _SHAPES

    empirical: Empirical


def _length_tag(value: object) -> str:
    if isinstance(value, UniformLength) or (isinstance(value, dict) and "uniform" in value):
        return "<uniform>"
    if isinstance(value, EmpiricalLength) or (isinstance(value, dict) and "empirical" in value):
        return "<empirical>"
    return "<lognormal>" if isinstance(value, dict | LogNormalLength) else "<tokens>"


Length = Annotated[
    Annotated[NumTokens, Tag("<tokens>")]
    | Annotated[LogNormalLength, Tag("<lognormal>")]
    | Annotated[UniformLength, Tag("<uniform>")]
    | Annotated[EmpiricalLength, Tag("<empirical>")],
    Discriminator(_length_tag),
]
"""A number of tokens, or `{lognormal: …}`, `{uniform: …}`, `{empirical: …}`."""


def _at_most_max_turns(length: Length) -> Length:
    highest: int | None = MAX_TURNS  # a file's numbers are checked when they are read
    if isinstance(length, int):
        highest = length
    elif isinstance(length, LogNormalLength):
        highest = length.lognormal.max
    elif isinstance(length, UniformLength):
        highest = length.uniform.max
    if highest is None or highest > MAX_TURNS:
        found = "no max" if highest is None else f"up to {highest:,}"
        raise PydanticCustomError("range", f"has {found}: a session has at most {MAX_TURNS:,} turns")
    return length


NumTurns = Annotated[Length, AfterValidator(_at_most_max_turns)]
"""How many turns a session has, drawn as a length is."""


class LogNormalSeconds(Section):
    """Times whose logarithm is normal, given by their mean and coefficient of variation."""

    mean: PositiveSeconds
    cv: Annotated[float, Field(ge=0, le=100)]


_TIMES = ("lognormal", "exponential")


class LogNormalTime(Section):
    """`{lognormal: {mean: 10, cv: 1.5}}`."""

    siblings: ClassVar = _TIMES

    lognormal: LogNormalSeconds


class ExponentialTime(Section):
    """`{exponential: 10}`: times without memory, of that mean."""

    siblings: ClassVar = _TIMES

    exponential: PositiveSeconds


def _time_tag(value: object) -> str:
    if isinstance(value, LogNormalTime) or (isinstance(value, dict) and "lognormal" in value):
        return "<lognormal>"
    return "<exponential>" if isinstance(value, dict | ExponentialTime) else "<seconds>"


Time = Annotated[
    Annotated[Seconds, Tag("<seconds>")]
    | Annotated[LogNormalTime, Tag("<lognormal>")]
    | Annotated[ExponentialTime, Tag("<exponential>")],
    Discriminator(_time_tag),
]
"""Seconds: always as many, or `{exponential: mean}`, `{lognormal: {mean, cv}}`."""
