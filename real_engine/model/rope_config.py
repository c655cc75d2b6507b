"""Reads rotary positions from a config.json, in its old keys and in those of transformers 5."""

from __future__ import annotations

from collections.abc import Mapping

from ...policies.core.hf_config import ConfigError
from .rope import DEFAULT_THETA, LinearScaling, Llama3Scaling, Rope

ROPE_TYPES = ("default", "linear", "llama3")


def rope_of(config: Mapping[str, object], max_positions: int) -> Rope:
    """The rotary positions of a parsed config.json. Raises ConfigError.

    `rope_scaling` beside `rope_theta` until transformers 4, `rope_parameters` with both in it from 5 on. Where a file
    has both, `rope_scaling` counts, as there.
    """
    key = "rope_scaling" if config.get("rope_scaling") else "rope_parameters"
    fields = _fields(config, key)
    theta = fields.number("rope_theta", config.get("rope_theta", DEFAULT_THETA))
    if fields.number("partial_rotary_factor", config.get("partial_rotary_factor", 1.0)) != 1:
        raise ConfigError("partial_rotary_factor", "is not supported; choose 1")
    return Rope(theta, _scaling(fields, max_positions))


class _Fields:
    """Numbers of an object within the file; `key` says where it stands."""

    def __init__(self, key: str, values: Mapping[str, object]) -> None:
        self.key = key
        self.values = values

    def number(self, name: str, default: object = None) -> float:
        """A number above zero. Raises ConfigError where it is none, or missing without a default."""
        value = self.values.get(name)
        value = default if value is None else value
        field = f"{self.key}.{name}" if name in self.values or default is None else name
        if value is None:
            raise ConfigError(field, "is missing")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise ConfigError(field, f"must be a number above 0, not {value!r:.60}")
        return float(value)


def _fields(config: Mapping[str, object], key: str) -> _Fields:
    values = config.get(key) or {}
    if not isinstance(values, Mapping):
        raise ConfigError(key, f"must be an object, not {values!r:.60}")
    return _Fields(key, values)


def _scaling(fields: _Fields, max_positions: int) -> LinearScaling | Llama3Scaling | None:
    name = fields.values.get("rope_type", fields.values.get("type", "default"))
    if name not in ROPE_TYPES:
        raise ConfigError(f"{fields.key}.rope_type", f"{name!r:.60} is not supported; choose {', '.join(ROPE_TYPES)}")
    if name == "default":
        return None
    factor = fields.number("factor")
    return LinearScaling(factor) if name == "linear" else _llama3(fields, factor, max_positions)


def _llama3(fields: _Fields, factor: float, max_positions: int) -> Llama3Scaling:
    low, high = fields.number("low_freq_factor"), fields.number("high_freq_factor")
    if low >= high:
        raise ConfigError(f"{fields.key}.low_freq_factor", f"{low} must be below high_freq_factor, {high}")
    original = fields.number("original_max_position_embeddings", max_positions)
    return Llama3Scaling(factor, low, high, round(original))
