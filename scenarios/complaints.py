"""Turns what pydantic found into one line for people: which key, which value, what would be right."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_core import ErrorDetails

from .schema_workload import workload_types
from .section import suggestion


def complaint(error: ErrorDetails, raw: object) -> tuple[str, str]:
    """`(key path, message)` for one of pydantic's errors about the mapping `raw`."""
    keys = _yaml_keys(error["loc"], raw)
    kind, context = error["type"], error.get("ctx", {})
    if kind in ("unknown_key", "parameter"):
        keys.append(str(context["key"]))
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        keys.append("type")
    return ".".join(keys), _message(error, context)


def _yaml_keys(loc: tuple[int | str, ...], raw: object) -> list[str]:
    """The keys of `loc` that the YAML has too: pydantic also names the branch of a union that it tried."""
    keys, value = [], raw
    for part in loc:
        is_branch = str(part).startswith("<") or (isinstance(value, Mapping) and value.get("type") == part)
        if not is_branch:
            keys.append(str(part))
            value = _inside(value, part)
    return keys


def _inside(value: object, part: int | str) -> object:
    if isinstance(value, Mapping):
        return value.get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return None


_WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
    "model_attributes_type": "a mapping of keys",
}

_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}


def _message(error: ErrorDetails, context: Mapping[str, object]) -> str:
    kind, value = error["type"], error.get("input")
    if kind == "missing":
        return "is required"
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, not {shown(value)}"
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        return f"{shown(value)} is out of range: must be {words} {context[key]}"
    if kind == "literal_error":
        choices = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
        return f"{shown(value)} is unknown; {suggestion(str(value), choices)}"
    if kind == "union_tag_not_found":
        types = set(workload_types()) - ({"mixture", "trace"} if "parts" in error["loc"] else set())
        return f"is required; choose {', '.join(sorted(types))}"
    if kind == "union_tag_invalid":
        choices = [word.strip("'") for word in str(context["expected_tags"]).split(", ")]
        return f"{shown(context['tag'])} is unknown; {suggestion(str(context['tag']), choices)}"
    if kind == "string_pattern_mismatch":
        return f"{shown(value)} must be letters, digits, '.', '_' and '-', and begin with a letter or digit"
    if kind == "string_too_short":
        return "must not be empty"
    return error["msg"]


def shown(value: object) -> str:
    """A value as the YAML would write it, shortened."""
    if value is None:
        return "null (nothing)"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
