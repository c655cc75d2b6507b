"""How often generated requests come, how many, and what clients ask for: what all generators share."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from .schema_lengths import Empirical, NumTokens, Time
from .section import PositiveSeconds, Seconds, Section

Rate = Annotated[float, Field(ge=1e-6, le=1e6)]
"""Requests a second; a nanosecond clock tells arrivals apart up to a million."""

RateOrZero = Annotated[float, Field(ge=0, le=1e6)]

MAX_RETRIES = 20
"""Of one request."""

NumRequests = Annotated[int, Field(ge=1, le=10**9)]

NumClients = Annotated[int, Field(ge=1, le=10**6)]

_SHAPES = ("ramp", "points", "day")


class Ramp(Section):
    """From one rate to another in a straight line; then it stays there."""

    start: Annotated[RateOrZero, Field(alias="from")]
    end: Annotated[Rate, Field(alias="to")]
    over_s: PositiveSeconds


class RampRate(Section):
    """`{ramp: {from: 1, to: 20, over_s: 600}}`."""

    siblings: ClassVar = _SHAPES

    ramp: Ramp


class RatePoint(Section):
    """The rate at a time."""

    at_s: Seconds
    rate: RateOrZero


class PointsRate(Section):
    """`{points: [{at_s: 0, rate: 2}, {at_s: 60, rate: 30}]}`: straight lines between; then it stays at the last."""

    siblings: ClassVar = _SHAPES

    points: Annotated[list[RatePoint], Field(min_length=1)]

    @model_validator(mode="after")
    def _points_are_in_order(self) -> Self:
        times = [point.at_s for point in self.points]
        if times[0] != 0 or any(a >= b for a, b in pairwise(times)):
            raise PydanticCustomError("range", "points must begin at at_s: 0, each later than the one before")
        if self.points[-1].rate < 1e-6:
            raise PydanticCustomError("range", "the last rate lasts, so it must be at least 1e-06")
        return self


class Day(Section):
    """Rates evenly spaced over a day that repeats, straight lines between; the first is that of midnight."""

    rates: Annotated[list[RateOrZero], Field(min_length=2, max_length=10_000)]
    length_s: PositiveSeconds = 86_400.0
    """A shorter day is the same curve, played faster."""

    @model_validator(mode="after")
    def _someone_comes(self) -> Self:
        if max(self.rates) < 1e-6:
            raise PydanticCustomError("range", "rates: one of them at least must be 1e-06 or more")
        return self


class DayRate(Section):
    """`{day: {rates: [1, 1, 4, 10, 12, 6], length_s: 86400}}`."""

    siblings: ClassVar = _SHAPES

    day: Day


def _rate_tag(value: object) -> str:
    if isinstance(value, PointsRate) or (isinstance(value, dict) and "points" in value):
        return "<points>"
    if isinstance(value, DayRate) or (isinstance(value, dict) and "day" in value):
        return "<day>"
    if isinstance(value, dict | RampRate):
        return "<ramp>"
    return "<inf>" if value == "inf" or (isinstance(value, float) and value == math.inf) else "<rate>"


RateCurve = RampRate | PointsRate | DayRate

AnyRate = Annotated[
    Annotated[Rate, Tag("<rate>")]
    | Annotated[Literal["inf"], BeforeValidator(lambda value: "inf"), Tag("<inf>")]
    | Annotated[RampRate, Tag("<ramp>")]
    | Annotated[PointsRate, Tag("<points>")]
    | Annotated[DayRate, Tag("<day>")],
    Discriminator(_rate_tag),
]
"""Requests a second, `inf` (all at once), or one that changes: `{ramp: …}`, `{points: …}`, `{day: …}`."""


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("range", "{says}", {"says": message})


class Pacing(Section):
    """When requests (of `multi_turn`: sessions) come by themselves, and until when."""

    rate: AnyRate = 4.0
    arrivals: Literal["poisson", "constant", "gamma", "empirical"] = "poisson"
    burstiness: Annotated[float, Field(ge=1e-3, le=1e6)] = 1.0
    """Of `gamma`, as vLLM's benchmark has it: gaps have CV 1 / sqrt(burstiness); 1 is Poisson, below 1 bursts."""
    gaps: Empirical | None = None
    """Of `empirical`: gaps between arrivals, whole numbers from 0 up in any unit, since `rate` sets their mean. Each
    comes once, in an order of chance, before any comes again."""
    duration_s: PositiveSeconds | None = None
    """Nobody comes at this time or later."""
    concurrency: NumClients | None = None
    """A closed loop: so many clients, each of which sends its next request when its last has ended."""
    pause_s: Time = 0.0
    """Of such a client, between the end of a request and the next one."""
    max_concurrency: NumClients | None = None
    """Requests come at their rate, but one that finds so many under way is held back until one of those ends."""

    @model_validator(mode="before")
    @classmethod
    def _clients_set_the_pace(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and raw.get("concurrency") is not None and "rate" not in raw:
            return {**raw, "rate": "inf"}
        return raw

    @model_validator(mode="after")
    def _keys_go_together(self) -> Self:
        if self.concurrency is not None and self.rate != "inf":
            raise _wrong("concurrency goes without a rate: its clients wait for nothing but their answers")
        if self.concurrency is not None and self.max_concurrency is not None:
            raise _wrong("concurrency and max_concurrency are two kinds of closed loop: give one")
        if self.concurrency is None and self.pause_s != 0:
            raise _wrong("pause_s is that of a closed loop's clients: it goes with concurrency only")
        if self.burstiness != 1 and self.arrivals != "gamma":
            raise _wrong("burstiness goes with arrivals: gamma only")
        if (self.gaps is not None) != (self.arrivals == "empirical"):
            raise _wrong("gaps and arrivals: empirical go together: the one says which file, the other to use it")
        if self.rate == "inf" and self.num_clients is None and self.count is None:
            raise _wrong("duration_s alone does not bound a rate of inf: give a count or max_concurrency")
        return self

    @property
    def num_clients(self) -> int | None:
        """Of a closed loop; None where requests come whatever has become of the others."""
        return self.concurrency or self.max_concurrency

    @property
    def count(self) -> int | None:
        """How many come by themselves; None where only the duration ends it."""
        raise NotImplementedError


class Counted(Pacing):
    """So many requests, or as many as come in a time; of both, what is reached first."""

    requests: NumRequests | None = None
    """2000 where neither it nor `duration_s` is given."""

    @model_validator(mode="before")
    @classmethod
    def _there_is_an_end(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and raw.get("requests") is None and raw.get("duration_s") is None:
            return {**raw, "requests": 2000}
        return raw

    @property
    def count(self) -> int | None:
        """As many as asked for."""
        return self.requests


class FixedMaxTokens(Section):
    """`{fixed: 1024}`: every request asks for that many; a longer output is cut there."""

    fixed: NumTokens


class FactorMaxTokens(Section):
    """`{factor: 1.5}`: a request asks for that multiple of what it will generate, rounded up."""

    factor: Annotated[float, Field(ge=1, le=1e6)]


def _max_tokens_tag(value: object) -> str:
    if isinstance(value, FactorMaxTokens) or (isinstance(value, dict) and "factor" in value):
        return "<factor>"
    return "<fixed>" if isinstance(value, dict | FixedMaxTokens) else "<exact>"


MaxTokens = Annotated[
    Annotated[Literal["exact"], Tag("<exact>")]
    | Annotated[FixedMaxTokens, Tag("<fixed>")]
    | Annotated[FactorMaxTokens, Tag("<factor>")],
    Discriminator(_max_tokens_tag),
]
"""What a client asks for, given what it will get: `exact`, `{fixed: N}` or `{factor: F}`."""


class PriorityWeight(Section):
    """A priority (a smaller one is more urgent) and the weight with which a request has it."""

    priority: Annotated[int, Field(ge=-(10**9), le=10**9)]
    weight: Annotated[float, Field(gt=0, le=1e9)]


class Asking(Section):
    """What clients ask for and how urgently."""

    max_tokens: MaxTokens = "exact"
    priorities: Annotated[list[PriorityWeight], Field(min_length=1)] = Field(
        default_factory=lambda: [PriorityWeight(priority=0, weight=1.0)]
    )
    """How urgent requests are; matters where the scheduling policy looks at it."""
    deadline_s: PositiveSeconds | None = None
    """By when, from its arrival, a request is due; `slo.ttft_s`, else `slo.e2e_s`, where left out. Nothing is given up
    then: it matters where the scheduling policy looks at it."""
    timeout_s: Annotated[float, Field(ge=1e-6, le=1e9)] | None = None
    """A client that has waited so long for the whole answer gives up: the engine aborts the request."""
    retries: Annotated[int, Field(ge=0, le=MAX_RETRIES)] = 0
    """How often it sends the request anew; then it goes away, and so does its session."""
    backoff_s: Seconds = 1.0
    """Its wait before the first of those, twice as long before each next one."""

    @model_validator(mode="after")
    def _retries_follow_timeouts(self) -> Self:
        if self.retries and self.timeout_s is None:
            raise _wrong("retries go with timeout_s only: who never gives up sends once")
        return self


class Generated(Counted, Asking):
    """What most generators share."""
