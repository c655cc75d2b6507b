"""The `workload` section: a generator with its parameters, or a trace to play."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from .schema_pacing import MaxTokens, Rate
from .schema_sessions import MixtureSettings, SingleTraffic
from .section import Count, Section

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

    @property
    def num_clients(self) -> None:
        """Of a closed loop: a trace plays on, whatever has become of its requests."""
        return None

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


GeneratedSettings = SingleTraffic | MixtureSettings

WorkloadSettings = Annotated[GeneratedSettings | TraceSettings, Field(discriminator="type")]


def workload_types() -> list[str]:
    """What `type` can be."""
    kinds = (*get_args(GeneratedSettings), TraceSettings)
    return sorted(get_args(kind.model_fields["type"].annotation)[0] for kind in kinds)
