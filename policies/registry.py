"""Policies by name: where a scenario's `{name: lru, ...}` becomes an object."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

KINDS = ("batching", "scheduling", "preemption", "chunk_size", "eviction")

_classes: dict[str, dict[str, type]] = {kind: {} for kind in KINDS}
_Class = TypeVar("_Class", bound=type)


class PolicyError(ValueError):
    """A policy was asked for that does not exist, or with parameters that it does not take.

    `key` is the part of the specification at fault: `name`, or a parameter.
    """

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def register(kind: str, name: str) -> Callable[[_Class], _Class]:
    """Class decorator: make a policy known as `name`."""

    def add(policy: _Class) -> _Class:
        assert _classes[kind].get(name, policy).__qualname__ == policy.__qualname__, f"two {kind} policies: {name}"
        _classes[kind][name] = policy
        return policy

    return add


def policies(kind: str) -> Mapping[str, type]:
    """The registered policies of a kind by name, in alphabetical order."""
    package = importlib.import_module(f".{kind}", __package__)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f".{kind}.{module.name}", __package__)
    return dict(sorted(_classes[kind].items()))


def parameters(policy: type) -> Mapping[str, inspect.Parameter]:
    """The parameters that a policy takes, by name."""
    return inspect.signature(policy).parameters


def create(kind: str, spec: Mapping[str, Any]) -> Any:
    """The policy that `spec` (`name` and parameters) asks for.

    Raises PolicyError for an unknown name, an unknown or missing parameter, or a value out of type or range.
    """
    known = policies(kind)
    name = spec.get("name")
    if not isinstance(name, str) or name not in known:
        raise PolicyError("name", f"{name!r} is unknown; choose {', '.join(known)}")
    policy = known[name]
    given = {key: value for key, value in spec.items() if key != "name"}
    _check_parameters(name, policy, given)
    try:
        return policy(**given)
    except ValueError as error:
        key, _, rest = str(error).partition(": ")
        raise PolicyError(key if key in given else "name", rest if key in given else str(error)) from None


def check(kind: str, spec: Mapping[str, Any]) -> None:
    """Raise PolicyError unless `spec` names a policy and its parameters."""
    create(kind, spec)


def _check_parameters(name: str, policy: type, given: Mapping[str, Any]) -> None:
    takes = parameters(policy)
    for key in given:
        if key not in takes:
            choices = f"it takes {', '.join(takes)}" if takes else "it takes no parameters"
            raise PolicyError(key, f"{name} has no such parameter; {choices}")
    for key, parameter in takes.items():
        if parameter.default is inspect.Parameter.empty and key not in given:
            raise PolicyError(key, f"is missing; {name} needs it")
    hints = get_type_hints(inspect.getattr_static(policy, "__init__"))
    for key, value in given.items():
        hint = hints.get(key, Any)
        if not _fits(value, hint):
            wanted = hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")
            raise PolicyError(key, f"{value!r} is not of type {wanted}")


def _fits(value: object, hint: Any) -> bool:
    """Whether a value out of a YAML is of the type that a parameter is annotated with."""
    origin = get_origin(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, choice) for choice in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
    return isinstance(value, origin or hint)
