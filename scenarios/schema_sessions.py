"""The `workload` section of sessions, and of several kinds of traffic at once."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, field_serializer, model_validator
from pydantic_core import PydanticCustomError

from .schema_generators import (
    AgentSettings,
    FewShotSettings,
    IndependentSettings,
    PrefixReuseSettings,
    RagSettings,
    SharedPrefixSettings,
)
from .schema_lengths import (
    ExponentialTime,
    Length,
    LogNormal,
    LogNormalLength,
    NumTokens,
    NumTurns,
    Time,
    Uniform,
    UniformLength,
)
from .schema_pacing import Asking, Counted, NumRequests, Pacing
from .section import Section


class MultiTurnSettings(Pacing, Asking):
    """Conversations: each turn's prompt is all that was said before, the answers as they were, and something new.

    `rate`, `duration_s` and a closed loop's clients are those of sessions, which go on once they have begun. The
    lengths are nobody's measurement.
    """

    type: Literal["multi_turn"]
    sessions: NumRequests | None = None
    """200 where neither it nor `duration_s` is given."""
    turns: NumTurns = UniformLength(uniform=Uniform(min=1, max=10))
    think_s: Time = ExponentialTime(exponential=10.0)
    """From an answer's end to the next question."""
    system_tokens: Length = 500
    """Shared by all sessions."""
    user_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=80, cv=1.0, max=4000))
    output_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=250, cv=0.8, max=2000))
    max_context_tokens: NumTokens | None = None
    """A session ends before a turn whose prompt and output together would be longer; else the engine refuses that
    turn where it cannot serve it, and those after it, which are longer still."""

    @model_validator(mode="before")
    @classmethod
    def _there_is_an_end(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and raw.get("sessions") is None and raw.get("duration_s") is None:
            return {**raw, "sessions": 200}
        return raw

    @property
    def count(self) -> int | None:
        """Sessions that begin."""
        return self.sessions


SingleTraffic = (
    AgentSettings
    | IndependentSettings
    | FewShotSettings
    | PrefixReuseSettings
    | RagSettings
    | SharedPrefixSettings
    | MultiTurnSettings
)

PACE = {*Pacing.model_fields, "requests", "sessions"}
"""What a part of a mixture leaves to the mixture."""


class Part(Section):
    """A share of a mixture: its weight, the tenant that it belongs to, and a generator without a pace of its own."""

    tenant: Annotated[str, Field(min_length=1, max_length=100)]
    weight: Annotated[float, Field(gt=0, le=1e9)] = 1.0
    workload: Annotated[SingleTraffic, Field(discriminator="type")]

    @model_validator(mode="before")
    @classmethod
    def _the_mixture_sets_the_pace(cls, raw: Any) -> Any:
        workload = raw.get("workload") if isinstance(raw, dict) else None
        if isinstance(workload, dict) and (own := sorted(PACE.intersection(workload))):
            says = f"workload.{own[0]} is the mixture's to say: a part has a weight"
            raise PydanticCustomError("range", "{says}", {"says": says})
        return raw

    @field_serializer("workload", mode="wrap")
    def _without_pace(self, workload: SingleTraffic, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in dump(workload).items() if key not in PACE}


class MixtureSettings(Counted):
    """Several kinds of traffic at once: each request (or session) is of one part, drawn by weight."""

    type: Literal["mixture"]
    parts: Annotated[list[Part], Field(min_length=1, max_length=1000)]

    @model_validator(mode="after")
    def _tenants_are_told_apart(self) -> Self:
        names = [part.tenant for part in self.parts]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            says = f"parts: tenant '{twice[0]}' stands twice"
            raise PydanticCustomError("range", "{says}", {"says": says})
        return self
