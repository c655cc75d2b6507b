"""The catalog of known models and GPUs, by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from .gpu_spec import GpuSpec
from .model_spec import ModelSpec

GIB = 2**30


class UnknownName(ValueError):
    """A model or GPU that the catalog does not have; the message names those that it has."""


def model(name: str) -> ModelSpec:
    """The model of that name; raises UnknownName."""
    return ModelSpec(**_entry("model", "models", name))


def gpu(name: str) -> GpuSpec:
    """The GPU of that name; raises UnknownName."""
    return gpu_from_sheet(_entry("GPU", "gpus", name))


def gpu_from_sheet(sheet: Mapping[str, Any]) -> GpuSpec:
    """The GPU of a data sheet in GiB, GB/s and TFLOP/s, as the catalog's files state it."""
    return GpuSpec(
        name=sheet["name"],
        memory_bytes=round(sheet["memory_gib"] * GIB),
        bandwidth_bytes_per_s=sheet["bandwidth_gb_s"] * 1e9,
        bf16_flop_per_s=sheet["bf16_tflop_s"] * 1e12,
        fp8_flop_per_s=_times(1e12, sheet["fp8_tflop_s"]),
        fp32_flop_per_s=_times(1e12, sheet.get("fp32_tflop_s")),
        interconnect_bytes_per_s=_times(1e9, sheet["interconnect_gb_s"]),
        host_link_bytes_per_s=_times(1e9, sheet["host_link_gb_s"]),
    )


def _times(unit: float, quantity: float | None) -> float | None:
    return None if quantity is None else quantity * unit


def model_names() -> list[str]:
    """Names of the known models, sorted."""
    return sorted(_sheets("models"))


def gpu_names() -> list[str]:
    """Names of the known GPUs, sorted."""
    return sorted(_sheets("gpus"))


def _sheets(folder: str) -> dict[str, Traversable]:
    entries = (files(__package__) / "catalog" / folder).iterdir()
    return {entry.name.removesuffix(".yaml"): entry for entry in entries if entry.name.endswith(".yaml")}


def _entry(noun: str, folder: str, name: str) -> dict[str, Any]:
    sheets = _sheets(folder)
    if name not in sheets:
        raise UnknownName(f"{noun} {name!r} is unknown; choose {', '.join(sorted(sheets))}")
    entry: dict[str, Any] = yaml.safe_load(sheets[name].read_text(encoding="utf-8"))
    return entry
