"""The `workload` section of each generator of single requests."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from .schema_lengths import Length, LogNormal, LogNormalLength
from .schema_pacing import Generated


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
