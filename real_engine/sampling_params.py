"""How a request's tokens are chosen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Raises ValueError for what is out of range."""

    temperature: float = 0.0
    """0: the likeliest token."""
    top_k: int = 0
    """Of how many of the likeliest tokens; 0: of all."""
    top_p: float = 1.0
    """Of the fewest that hold so much of the probability."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 100:
            raise ValueError(f"temperature: {self.temperature} is out of range; from 0 to 100")
        if not 0 <= self.top_k < 1 << 31:
            raise ValueError(f"top_k: {self.top_k} is out of range; at least 0")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p: {self.top_p} is out of range; above 0, at most 1")
        if not -(1 << 63) <= self.seed < 1 << 63:
            raise ValueError(f"seed: {self.seed} does not fit 64 bits")


GREEDY = SamplingParams()
