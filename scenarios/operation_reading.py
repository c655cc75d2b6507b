"""Says in one line what is wrong with a case of operations on a radix tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CONFIG_KEYS: Mapping[str, type] = {"page_size": int, "eviction": str, "capacity": int, "cache": str}
"""What a case's `config` holds, all of it."""
EVICTIONS = ("fifo", "filo", "lfu", "lru", "mru", "priority", "slru")
"""SGLang's eviction orders, which have the same names here."""
CACHES = ("radix", "unified")

_OPERATION_KEYS: Mapping[str, Mapping[str, type]] = {
    "match": {"tokens": list},
    "insert": {"tokens": list, "priority": int, "inserted_len": int},
    "evict": {"num_tokens": int},
    "lock": {"tokens": list, "as": str},
    "unlock": {"handle": str},
}
_OPTIONAL = frozenset({"priority", "inserted_len"})


def check_operations(case: Mapping[str, Any]) -> None:
    """Raise ValueError, which names the place, unless `config` and `ops` can be carried out as they stand."""
    _check_config(case["config"])
    held: set[str] = set()
    for index, operation in enumerate(case["ops"]):
        where = f"ops[{index}]"
        _check_operation(where, operation)
        _follow_handles(where, operation, held)


def _check_config(config: Mapping[str, Any]) -> None:
    _check_keys("config", config, CONFIG_KEYS, frozenset())
    for key in ("page_size", "capacity"):
        if config[key] < 1:
            raise ValueError(f"config.{key}: {config[key]} is out of range; at least 1")
    for key, choices in (("eviction", EVICTIONS), ("cache", CACHES)):
        if config[key] not in choices:
            raise ValueError(f"config.{key}: {config[key]!r} is unknown; choose {', '.join(choices)}")


def _check_operation(where: str, operation: Any) -> None:
    if not isinstance(operation, dict):
        raise ValueError(f"{where}: not a JSON object")
    name = operation.get("op")
    if not isinstance(name, str) or name not in _OPERATION_KEYS:
        told = "is missing" if "op" not in operation else f"{name!r} is unknown"
        raise ValueError(f"{where}.op: {told}; choose {', '.join(_OPERATION_KEYS)}")
    _check_keys(where, operation, {"op": str, **_OPERATION_KEYS[name]}, _OPTIONAL)
    for key in ("num_tokens", "inserted_len"):
        if operation.get(key, 0) < 0:
            raise ValueError(f"{where}.{key}: {operation[key]} is negative")


def _check_keys(where: str, found: Mapping[str, Any], kinds: Mapping[str, type], optional: frozenset[str]) -> None:
    for key in kinds:
        if key not in found and key not in optional:
            raise ValueError(f"{where}.{key}: is missing")
    for key, value in found.items():
        kind = kinds.get(key)
        if kind is None:
            raise ValueError(f"{where}.{key}: unknown key; choose {', '.join(kinds)}")
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"{where}.{key}: {value!r} is not of type {kind.__name__}")
        if isinstance(value, list) and not all(type(item) is int for item in value):
            raise ValueError(f"{where}.{key}: holds something that is no integer")


def _follow_handles(where: str, operation: Mapping[str, Any], held: set[str]) -> None:
    """Every lock has its own name while it is held, and an unlock names one that is."""
    if operation["op"] == "lock":
        if operation["as"] in held:
            raise ValueError(f"{where}.as: {operation['as']!r} is locked already")
        held.add(operation["as"])
    elif operation["op"] == "unlock":
        if operation["handle"] not in held:
            raise ValueError(f"{where}.handle: {operation['handle']!r} is not locked")
        held.remove(operation["handle"])
