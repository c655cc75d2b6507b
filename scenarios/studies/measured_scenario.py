"""The scenario of a measured run: what the run says of its engine, then the user's YAML, then what the user sets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...calibrate.runs.measured_run import MeasuredRun
from .. import known_names
from ..errors import ScenarioError
from ..importing.model_names import known_model
from ..loading import overridden
from ..overrides import Overrides
from ..schema import Scenario
from ..yaml_reading import read_yaml_mapping

_KV_DTYPES = {"bfloat16": "bf16", "auto": "auto"}
_BY_DRIVER = {
    "h10080gbhbm3": "h100-sxm",
    "h200": "h200-sxm",
    "a100sxm440gb": "a100-40g",
    "a100pcie40gb": "a100-40g",
    "a100sxm480gb": "a100-80g",
    "a10080gbpcie": "a100-80g",
    "rtxpro6000blackwellserveredition": "rtx-pro-6000",
    "rtxpro6000blackwellworkstationedition": "rtx-pro-6000",
}
"""What NVIDIA's driver calls GPUs whose name in the catalogue is another: small letters and digits alone."""
_MAKERS = re.compile(r"nvidia|amd|geforce|instinct|[^a-z0-9]")


def scenario_of(
    run: MeasuredRun, scenario: Path | None = None, overrides: Overrides = (), profile: Path | None = None
) -> Scenario:
    """The scenario in which `run` can be played again; ScenarioError where the run leaves open what must be known.

    A key comes from the overrides, else from the YAML at `scenario` (its workload is not used), else from the run.
    """
    raw = _of_run(run)
    given = {} if scenario is None else read_yaml_mapping(scenario)
    raw = _merged(raw, {key: value for key, value in given.items() if key != "workload"})
    if profile is not None:
        raw = _merged(raw, {"hardware": {"profile": str(profile.resolve())}})
    _check_told(run, raw, overrides)
    return overridden(raw, overrides, scenario)


def _of_run(run: MeasuredRun) -> dict[str, Any]:
    """What the run says, as a scenario."""
    setup = run.setup
    model = known_model(setup.model, known_names.model_names()) if setup.model else None
    hardware = {"gpu": known_gpu(setup.gpu) if setup.gpu else None, "tensor_parallel": setup.tensor_parallel}
    quantization = model.quantization if model else None
    engine = {"preset": setup.preset, "quantization": quantization, **_engine(setup.engine)}
    raw: dict[str, Any] = {
        "name": _name(run.source),
        "hardware": _told(hardware),
        "engine": _told(engine),
        "workload": {"type": "trace", "path": str(run.source), "format": "hash_ids"},
    }
    return {**raw, "model": model.name} if model else raw


def _told(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value is not None}


def known_gpu(name: str) -> str | None:
    """The catalogue's name for what a driver calls a GPU: `NVIDIA GeForce RTX 4090` is `rtx-4090`."""
    plain = _plain(name)
    by_name = {_plain(known): known for known in known_names.gpu_names()}
    return by_name.get(plain) or _BY_DRIVER.get(plain)


def _plain(name: str) -> str:
    return _MAKERS.sub("", name.lower())


def _engine(settings: Mapping[str, Any]) -> dict[str, Any]:
    engine = dict(settings)
    if isinstance(kv_dtype := engine.get("kv_cache_dtype"), str):
        engine["kv_cache_dtype"] = "fp8" if kv_dtype.startswith("fp8") else _KV_DTYPES.get(kv_dtype, kv_dtype)
    return engine


def _name(source: Path) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", source.resolve().name).lstrip("._-")[:100] or "run"


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` where it says something, mapping by mapping, else `below`."""
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merged(merged[key], value) if both else value
    return merged


def _check_told(run: MeasuredRun, raw: Mapping[str, Any], overrides: Overrides) -> None:
    keys = [key if isinstance(overrides, Mapping) else key.partition("=")[0].strip() for key in overrides]
    hardware = raw["hardware"] if isinstance(raw["hardware"], Mapping) else {}
    if "model" not in raw and "model" not in keys:
        message = f"the run does not say, or names one that is not known ({run.setup.model}): give --set model=…"
        raise ScenarioError(run.source, "model", message)
    set_by_hand = {"hardware", "hardware.gpu", "hardware.profile"} & set(keys)
    if "gpu" not in hardware and "profile" not in hardware and not set_by_hand:
        message = f"the run does not say, or names one that is not known ({run.setup.gpu}): give --set hardware.gpu=…"
        raise ScenarioError(run.source, "hardware.gpu", message)
