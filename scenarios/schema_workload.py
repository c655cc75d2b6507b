"""The `workload` section: a generator with its parameters, or a trace to play."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from .section import Count, Section

Rate = Annotated[float, Field(ge=1e-6, le=1e6)]
"""Requests a second; a nanosecond clock tells arrivals apart up to a million."""

NumTokens = Annotated[int, Field(ge=1, le=10**9)]


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


class LogNormalLength(Section):
    """`{lognormal: {mean: 300, cv: 1.0, max: 4096}}`."""

    lognormal: LogNormal


def _length_tag(value: object) -> str:
    return "<lognormal>" if isinstance(value, dict | LogNormalLength) else "<tokens>"


Length = Annotated[
    Annotated[NumTokens, Tag("<tokens>")] | Annotated[LogNormalLength, Tag("<lognormal>")],
    Discriminator(_length_tag),
]
"""A number of tokens, or `{lognormal: …}`."""


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


class Generated(Section):
    """What generated traffic shares: how many requests, how often, how evenly."""

    rate: Rate = 4.0
    requests: Annotated[int, Field(ge=1, le=10**9)] = 2000
    arrivals: Literal["poisson", "constant"] = "poisson"
    max_tokens: MaxTokens = "exact"
    priorities: Annotated[list[PriorityWeight], Field(min_length=1)] = Field(
        default_factory=lambda: [PriorityWeight(priority=0, weight=1.0)]
    )
    """How urgent requests are; matters where the scheduling policy looks at it."""


class AgentSettings(Generated):
    """Agents of several tenants: system prompt + tools + repository context + question.

    The lengths are nobody's measurement; they add up to about the mean prompt (6,200) and output (110 tokens,
    CV 0.5) of the LMCache trace of a software-engineering agent.
    """

    type: Literal["agent"]
    tenants: Annotated[int, Field(ge=1, le=10**6)] = 20
    tenant_zipf: Annotated[float, Field(ge=0, le=20)] = 1.0
    """The k-th tenant's share is proportional to 1 / k^tenant_zipf; 0 makes them equal."""
    repositories: Annotated[int, Field(ge=1, le=10**6)] = 8
    """Repositories of one tenant."""
    repository_zipf: Annotated[float, Field(ge=0, le=20)] = 1.0
    system_tokens: Length = 500
    """Drawn once a tenant, as are the tools."""
    tools_tokens: Length = 1500
    repository_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=4000, cv=0.5, max=16000))
    """Drawn once a repository."""
    question_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=200, cv=1.0, max=4000))
    """Drawn a request, as are the outputs."""
    output_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=110, cv=0.5, max=1000))

    @model_validator(mode="after")
    def _repositories_fit(self) -> Self:
        if self.tenants * self.repositories > 10**6:
            raise PydanticCustomError("range", "tenants x repositories is out of range: at most 1,000,000")
        return self


class IndependentSettings(Generated):
    """Requests that share nothing."""

    type: Literal["independent"]
    prompt_tokens: Length = 512
    output_tokens: Length = 128


SESSION_FORMATS = frozenset({"sharegpt", "weka"})
"""Formats whose rows are sessions: requests that follow one another."""
UNTIMED_FORMATS = SESSION_FORMATS | {"custom"}
"""Formats that do not say when requests or sessions come."""
TEXT_FORMATS = frozenset({"custom", "sharegpt"})
"""Formats whose prompts are texts, not lengths."""


class TraceSettings(Section):
    """A trace to play, plain or gzipped."""

    type: Literal["trace"]
    path: Annotated[str, Field(min_length=1)]
    """Relative to the folder of the YAML."""
    format: Literal["mooncake", "azure", "bailian", "burstgpt", "custom", "hash_ids", "sharegpt", "weka"]
    limit: Count | None = None
    """Only the first rows of the file."""
    time_scale: Annotated[float, Field(ge=1e-6, le=1e6)] = 1.0
    """2 plays the trace twice as slowly."""
    rate: Rate | None = None
    """Requests a second: stretches the recorded times so that the rows played have that mean rate, in place of
    `time_scale`. A format without times needs it; where a row is a session, it is sessions a second."""
    arrivals: Literal["poisson", "constant"] | None = None
    """How requests of a format without times come; Poisson where left out."""
    block_tokens: Annotated[int, Field(ge=1, le=10**6)] | None = None
    """Tokens that one hash id stands for, with `format: hash_ids` only; 16 where left out."""
    chars_per_token: Annotated[float, Field(ge=0.5, le=100)] | None = None
    """How many characters of a text count as a token, where prompts are texts; 4 where left out."""
    max_tokens: MaxTokens = "exact"

    @model_validator(mode="after")
    def _keys_belong_to_the_format(self) -> Self:
        timed, form = self.format not in UNTIMED_FORMATS, self.format
        if self.block_tokens is not None and form != "hash_ids":
            raise PydanticCustomError("range", f"block_tokens goes with format: hash_ids only; {form} sets its own")
        if self.chars_per_token is not None and form not in TEXT_FORMATS:
            raise PydanticCustomError("range", f"chars_per_token goes with texts; {form} gives numbers of tokens")
        if timed and self.arrivals is not None:
            raise PydanticCustomError("range", f"arrivals goes with formats without times; {form} has its own")
        if not timed and self.rate is None:
            raise PydanticCustomError("range", f"format: {form} has no times; give workload.rate, requests a second")
        if self.time_scale != 1 and (self.rate is not None or not timed):
            raise PydanticCustomError("range", "rate and time_scale exclude each other: both stretch the times")
        return self


WorkloadSettings = Annotated[AgentSettings | IndependentSettings | TraceSettings, Field(discriminator="type")]
