"""What every part of a scenario's schema shares: strictness, number ranges, unknown keys."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Annotated, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, model_validator
from pydantic_core import PydanticCustomError

Count = Annotated[int, Field(ge=1, le=10**12)]
"""A number of things, at least one."""

Seconds = Annotated[float, Field(ge=0, le=1e9)]
"""A time of up to 30 years; nanoseconds of it fit 64 bits."""

PositiveSeconds = Annotated[float, Field(gt=0, le=1e9)]
"""A time that cannot be zero: a target."""

_T = TypeVar("_T")


def given_or(given: _T | None, default: _T) -> _T:
    """What a section gives, or the default where it leaves it out; a zero is given."""
    return default if given is None else given


def suggestion(word: str, choices: Iterable[str]) -> str:
    """Names the choices, and the one that was likely meant: `did you mean 'lru'? choose fifo, lru`."""
    known = sorted(choices)
    near = difflib.get_close_matches(word, known, n=1)
    meant = f"did you mean '{near[0]}'? " if near else ""
    return f"{meant}choose {', '.join(known)}"


class Section(BaseModel):
    """A mapping of the YAML: immutable, strict about types, without NaN, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    twins: ClassVar[dict[str, str]] = {}
    """Keys of other engines, and the sentence that names what stands for them here."""

    siblings: ClassVar[tuple[str, ...]] = ()
    """Keys of the sections that may stand in its place, to be named as choices too."""

    @model_validator(mode="wrap")
    @classmethod
    def _keys_are_known(cls, value: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(value, dict) and cls.model_config.get("extra") == "forbid":
            known = {field.alias or name for name, field in cls.model_fields.items()}
            for key in value:
                if key not in known and key in cls.siblings:
                    raise _unknown_key(key, (), {key: f"stands beside {', '.join(sorted(known))}: give one of them"})
                if key not in known:
                    raise _unknown_key(key, known.union(cls.siblings), cls.twins)
        return handler(value)


def _unknown_key(key: str, known: Iterable[str], twins: dict[str, str]) -> PydanticCustomError:
    says = twins.get(key) or f"unknown key; {suggestion(key, known)}"
    return PydanticCustomError("unknown_key", "{says}", {"key": key, "says": says})
