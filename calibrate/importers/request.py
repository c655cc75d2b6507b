"""What a user asks an importer for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...policies.core.model_spec import ModelSpec
from ...sim.cost_model.timings import ProfileError
from ..known_models import gpu_named, model_named


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """The source, and what it does not say itself or what is to be picked from it."""

    source: str
    model: str | None = None
    """A name of the catalog, a Hugging Face id, or the path of a config.json."""
    gpu: str | None = None
    tensor_parallel: int | None = None

    @property
    def path(self) -> Path:
        """The source as a path."""
        return Path(self.source)

    def model_or(self, told: str | None) -> ModelSpec:
        """The model asked for, or the one that the source tells of."""
        if (name := self.model or told) is None:
            raise ProfileError(f"{self.source}: does not say of which model; give --model")
        return model_named(name, self.source)

    def gpu_or(self, told: str | None) -> str:
        """The catalog's name of the GPU asked for, or of the one that the source tells of."""
        if (name := self.gpu or told) is None:
            raise ProfileError(f"{self.source}: does not say of which GPU; give --gpu")
        return gpu_named(name, self.source)
