"""`--set a.b.c=value`: puts a value, written as YAML, at a path of the scenario."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .complaints import shown
from .errors import ScenarioError
from .yaml_reading import parse_yaml

DEEPEST = 20


def apply_overrides(raw: dict[str, Any], overrides: Iterable[str], file: Path) -> tuple[dict[str, Any], set[str]]:
    """`raw` with each override in place (a copy), and the paths that were set; raises ScenarioError.

    Whether a path exists is for the schema to say: it knows the choices.
    """
    paths = set()
    for override in overrides:
        path, value = _parsed(override)
        raw = _with(raw, path.split("."), value, file, path)
        paths.add(path)
    return raw, paths


def _parsed(override: str) -> tuple[str, object]:
    path, equals, text = override.partition("=")
    path = path.strip()
    if not equals or not all(path.split(".")):
        raise ScenarioError(f"--set {override}", None, "write --set key.path=value, as in engine.max_num_seqs=64")
    if path.count(".") > DEEPEST:
        raise ScenarioError(f"--set {path[:40]}…", None, f"no key of a scenario lies more than {DEEPEST} levels deep")
    return path, parse_yaml(text, f"--set {override}")


def _with(mapping: dict[str, Any], keys: list[str], value: object, file: Path, path: str) -> dict[str, Any]:
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
