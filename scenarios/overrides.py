"""`--set a.b.c=value`: puts a value at a path of the scenario, written as YAML or given by code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from .complaints import shown
from .errors import ScenarioError
from .yaml_reading import parse_yaml

DEEPEST = 20

Overrides: TypeAlias = Iterable[str] | Mapping[str, object]
"""`["engine.max_num_seqs=64"]`, or the same as `{"engine.max_num_seqs": 64}`."""


def apply_overrides(raw: dict[str, Any], overrides: Overrides, file: Path | None) -> tuple[dict[str, Any], set[str]]:
    """`raw` with each override in place (a copy), and the paths that were set; raises ScenarioError.

    Whether a path exists is for the schema to say: it knows the choices.
    """
    pairs = parsed_overrides(overrides)
    for path, value in pairs:
        raw = _with(raw, path.split("."), value, file, path)
    return raw, {path for path, _ in pairs}


def parsed_overrides(overrides: Overrides) -> list[tuple[str, object]]:
    """Path and value of each, in order; raises ScenarioError for what is no path."""
    if isinstance(overrides, Mapping):
        return [(checked_path(path, f"override {path}"), value) for path, value in overrides.items()]
    return [_parsed(override) for override in overrides]


def _parsed(override: str) -> tuple[str, object]:
    path, equals, text = override.partition("=")
    if not equals:
        path = ""
    return checked_path(path, f"--set {override}"), parse_yaml(text, f"--set {override}")


def checked_path(path: str, given: str) -> str:
    """The path without blanks around it; `given` is what an error calls it."""
    path = path.strip()
    if not all(path.split(".")):
        raise ScenarioError(given, None, "write --set key.path=value, as in engine.max_num_seqs=64")
    if path.count(".") > DEEPEST:
        raise ScenarioError(f"--set {path[:40]}…", None, f"no key of a scenario lies more than {DEEPEST} levels deep")
    return path


def _with(mapping: dict[str, Any], keys: list[str], value: object, file: Path | None, path: str) -> dict[str, Any]:
    """A copy of `mapping` with `value` under `keys`; mappings on the way are made where nothing stands."""
    key, rest = keys[0], keys[1:]
    if not rest:
        return {**mapping, key: value}
    below = mapping.get(key, {})
    if not isinstance(below, dict):
        reached = path.removesuffix("." + ".".join(rest))
        message = f"holds {shown(below)}, not a mapping of keys, so --set {path} finds no place"
        raise ScenarioError(file, reached, message)
    return {**mapping, key: _with(below, rest, value, file, path)}
