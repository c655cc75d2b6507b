"""The `workload` section: a generator with its parameters, or a trace to play."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from .schema_pacing import MaxTokens
from .schema_sessions import MixtureSettings, SingleTraffic
from .section import Count, Section


class TraceSettings(Section):
    """A trace to play, plain or gzipped."""

    type: Literal["trace"]
    path: Annotated[str, Field(min_length=1)]
    """Relative to the folder of the YAML."""
    format: Literal["mooncake", "azure", "hash_ids"]
    limit: Count | None = None
    """Only the first rows of the file."""
    time_scale: Annotated[float, Field(ge=1e-6, le=1e6)] = 1.0
    """2 plays the trace twice as slowly."""
    block_tokens: Annotated[int, Field(ge=1, le=10**6)] | None = None
    """Tokens that one hash id stands for, with `format: hash_ids` only; 16 where left out."""
    max_tokens: MaxTokens = "exact"

    @property
    def num_clients(self) -> None:
        """Of a closed loop: a trace plays on, whatever has become of its requests."""
        return None

    @model_validator(mode="after")
    def _block_tokens_belong_to_hash_ids(self) -> Self:
        if self.block_tokens is not None and self.format != "hash_ids":
            raise PydanticCustomError(
                "range", f"block_tokens goes with format: hash_ids only; {self.format} sets its own"
            )
        return self


GeneratedSettings = SingleTraffic | MixtureSettings

WorkloadSettings = Annotated[GeneratedSettings | TraceSettings, Field(discriminator="type")]


def workload_types() -> list[str]:
    """What `type` can be."""
    kinds = (*get_args(GeneratedSettings), TraceSettings)
    return sorted(get_args(kind.model_fields["type"].annotation)[0] for kind in kinds)
