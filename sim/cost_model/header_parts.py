"""The numbers that a profile's header may hold: none is endless, or so large that arithmetic with it breaks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST = 10**9
Count = Annotated[int, Field(ge=0, le=MOST)]
Positive = Annotated[int, Field(ge=1, le=MOST)]
Seconds = Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)]
Microseconds = Annotated[float, Field(ge=0, le=60e6, allow_inf_nan=False)]
Residual = Annotated[float, Field(ge=-60, le=60, allow_inf_nan=False)]
ResidualShare = Annotated[float, Field(gt=-1, le=10, allow_inf_nan=False)]
Alpha = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""What is between two times, as a share of their difference."""
RelativeError = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Quantity = Annotated[float, Field(gt=0, le=1e9)]

Text = Annotated[str, Field(min_length=1)]

LinearLayer = Literal["qkv", "o", "gate_up", "down", "router", "lm_head"]


def _whole_groups_take_no_more(extra: tuple[float, ...]) -> tuple[float, ...]:
    if extra[0]:
        raise ValueError("the first is of no rows left over, and must be 0")
    return extra


RowsLeftOver = Annotated[
    tuple[Microseconds, ...], Field(min_length=2, max_length=64), AfterValidator(_whole_groups_take_no_more)
]


class Section(BaseModel):
    """A part of the header; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)
