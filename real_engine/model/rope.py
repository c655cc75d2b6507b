"""Rotary positions: the base, the scaling, and the table of cosines and sines."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

DEFAULT_THETA = 10_000.0
"""Su et al., RoFormer (2021), section 3.2.2; what `transformers` takes where a config.json has none."""


@dataclass(frozen=True, slots=True)
class LinearScaling:
    """Every frequency divided by `factor` (Chen et al., Positional Interpolation, 2023)."""

    factor: float

    def scale(self, frequencies: Tensor) -> Tensor:
        """Frequencies [D / 2] as scaled; a new tensor."""
        return frequencies / self.factor


@dataclass(frozen=True, slots=True)
class Llama3Scaling:
    """Long waves divided by `factor`, short ones kept, those between blended (as Meta published with Llama 3.1).

    A wave is short where more than `high_freq_factor` of it fit into `original_max_positions`, long where fewer than
    `low_freq_factor` do.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_positions: int

    def scale(self, frequencies: Tensor) -> Tensor:
        """Frequencies [D / 2] as scaled; a new tensor."""
        waves = self.original_max_positions * frequencies / (2 * math.pi)
        kept = (waves - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        kept = kept.clamp(0, 1)
        return (1 - kept) * frequencies / self.factor + kept * frequencies


@dataclass(frozen=True, slots=True)
class Rope:
    """How positions turn the heads."""

    theta: float = DEFAULT_THETA
    scaling: LinearScaling | Llama3Scaling | None = None

    def frequencies(self, head_dim: int, device: torch.device) -> Tensor:
        """Radians a position, [head_dim / 2] fp32."""
        exponents = torch.arange(0, head_dim, 2, dtype=torch.float32, device=device) / head_dim
        plain = 1.0 / self.theta**exponents
        return self.scaling.scale(plain) if self.scaling else plain

    def cos_sin(self, head_dim: int, max_positions: int, device: torch.device) -> Tensor:
        """[max_positions, head_dim] fp32: cosines, then sines, of head_dim / 2 angles.

        Angles are products in fp32, as in the code that such models were trained with.
        """
        positions = torch.arange(max_positions, dtype=torch.float32, device=device)
        angles = positions[:, None] * self.frequencies(head_dim, device)
        return torch.cat((angles.cos(), angles.sin()), dim=1)
