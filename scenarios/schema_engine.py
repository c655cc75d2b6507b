"""The `engine` section: the keys of the engine that the preset names, under that engine's own names."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Discriminator, Tag
from pydantic_core import PydanticCustomError

from .complaints import shown
from .schema_sglang import SglangEngine
from .schema_vllm import VllmEngine
from .section import suggestion


def presets() -> list[str]:
    """What `engine.preset` can be."""
    return sorted(name for kind in (VllmEngine, SglangEngine) for name in _presets_of(kind))


def _presets_of(kind: type[VllmEngine] | type[SglangEngine]) -> tuple[str, ...]:
    return get_args(kind.model_fields["preset"].annotation)


def _preset_is_known(value: Any) -> Any:
    if isinstance(value, dict) and (preset := value.get("preset", "vllm")) not in presets():
        says = f"{shown(preset)} is unknown; {suggestion(str(preset), presets())}"
        raise PydanticCustomError("unknown_key", "{says}", {"key": "preset", "says": says})
    return value


def _engine_tag(value: object) -> str:
    if isinstance(value, SglangEngine) or (
        isinstance(value, dict) and value.get("preset") in _presets_of(SglangEngine)
    ):
        return "<sglang>"
    return "<vllm>"


Engine = Annotated[
    Annotated[VllmEngine, Tag("<vllm>")] | Annotated[SglangEngine, Tag("<sglang>")],
    Discriminator(_engine_tag),
    BeforeValidator(_preset_is_known),
]
"""vLLM's keys, or with `preset: sglang` SGLang's."""
