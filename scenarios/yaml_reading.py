"""Reads YAML 1.2's plain types: `1e3` is a number, `off` is text, a key given twice is an error."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from .errors import ScenarioError


class _Loader(yaml.SafeLoader):
    """SafeLoader with the core schema of YAML 1.2 (no `yes`, no octal 010, no dates) and unique text keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (PyYAML's own)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping whose keys are text and given once."""
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(None, None, "expected a mapping", node.start_mark)
        mapping: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise _error(f"the key {key!r} is not text", key_node)
            if key in mapping:
                raise _error(f"the key '{key}' is given twice", key_node)
            mapping[key] = self.construct_object(value_node, deep=True)
        return mapping

    def construct_core_int(self, node: yaml.ScalarNode) -> int:
        """`12`, `-3`, `0x1f`, `0o17`; a leading zero does not make an octal."""
        text = self.construct_scalar(node)
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)

    def construct_core_float(self, node: yaml.ScalarNode) -> float:
        """`1.5`, `1e3`, `.inf`, `.nan`."""
        return float(self.construct_scalar(node).lower().replace(".inf", "inf").replace(".nan", "nan"))

    def construct_map(self, node: yaml.MappingNode) -> dict[Hashable, Any]:
        """A whole mapping at once, so that one that holds itself is an error."""
        return self.construct_mapping(node, deep=True)


def _error(problem: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:null", r"(~|null|Null|NULL|)$", [*"~nN", ""]),
    ("tag:yaml.org,2002:bool", r"(true|True|TRUE|false|False|FALSE)$", [*"tTfF"]),
    (_INT, r"([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", [*"-+0123456789"]),
    (_FLOAT, r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$", [*"-+.0123456789"]),
    (_FLOAT, r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$", [*"-+."]),
):
    _Loader.add_implicit_resolver(_tag, re.compile(_pattern), _first)
_Loader.add_constructor(_INT, _Loader.construct_core_int)
_Loader.add_constructor(_FLOAT, _Loader.construct_core_float)
_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_map)


def parse_yaml(text: str, file: str | Path) -> object:
    """The value that `text` holds, None where it holds nothing; ScenarioError names `file` and line."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}" if mark else None
        raise ScenarioError(file, where, error.problem or error.context or "not YAML") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ScenarioError(file, f"line {line}", f"character {error.character!r} is not allowed in YAML") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
        raise ScenarioError(file, None, f"cannot be read: {error}") from None


_SCENARIO = "a scenario is a mapping with name, model, hardware, workload"


def read_yaml_mapping(path: Path, wanted: str = _SCENARIO) -> dict[str, Any]:
    """The mapping that a UTF-8 file holds; ScenarioError where it is missing, empty or something else.

    `wanted` is what an empty file is told.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ScenarioError(path, None, f"cannot be read: {error.strerror}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ScenarioError(path, f"line {line}", f"byte 0x{raw[error.start]:02x} is not UTF-8") from None
    value = parse_yaml(text, path)
    if value is None:
        raise ScenarioError(path, None, f"is empty; {wanted}")
    if not isinstance(value, dict):
        raise ScenarioError(path, None, f"holds a {type(value).__name__}, not a mapping of keys")
    return value
