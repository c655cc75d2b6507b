"""Policies by name: where a scenario's `{name: lru, ...}` becomes an object."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from math import isfinite
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from .conformance import PROTOCOLS, complaint
from .errors import PolicyError as PolicyError
from .finding import FILE_MODULES, HERE, Folders, described, is_of_the_house, is_reference, plug_ins, referred

KINDS = tuple(PROTOCOLS)

_classes: dict[str, dict[str, type]] = {kind: {} for kind in KINDS}
_Class = TypeVar("_Class", bound=type)


def register(kind: str, name: str) -> Callable[[_Class], _Class]:
    """Class decorator: make a policy known as `name`; one in a user's file goes by its class's name instead."""

    def add(policy: _Class) -> _Class:
        if policy.__module__.startswith(FILE_MODULES):
            return policy  # it must not take the place of one that is known
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
    every = inspect.signature(policy).parameters
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {name: parameter for name, parameter in every.items() if parameter.kind not in variadic}


def find(kind: str, name: object, folders: Folders = HERE) -> type:
    """The class that a scenario calls `name`: registered, a plug-in's, or `./file.py:Class`, `package.module:Class`.

    Relative files are looked for in `folders`. Raises PolicyError where there is none, or what is there is no policy
    of this kind.
    """
    known = policies(kind)
    if isinstance(name, str) and name in known:
        policy = known[name]
        if is_of_the_house(policy):
            return policy
    elif isinstance(name, str) and is_reference(name):
        policy = referred(name, folders)
    else:
        policy = _plug_in(kind, name, known)
    if wrong := complaint(kind, policy):
        raise PolicyError("name", wrong)
    return policy


def _plug_in(kind: str, name: object, known: Mapping[str, type]) -> type:
    """The class of an entry point, which does not stand in for one that is known."""
    others = [plug_in for plug_in in plug_ins(KINDS)[0] if plug_in.kind == kind]
    named = [plug_in for plug_in in others if plug_in.name == name]
    if len(named) > 1:
        raise PolicyError("name", f"{name!r} is registered by {' and by '.join(p.distribution for p in named)}")
    if not named:
        choices = sorted({*known, *(plug_in.name for plug_in in others)})
        if isinstance(name, str) and name.endswith(".py"):
            raise PolicyError("name", f"{name!r} names a file without a class; write {name}:Class")
        raise PolicyError("name", f"{name!r} is unknown; choose {', '.join(choices)}")
    return named[0].load()


def create(kind: str, spec: Mapping[str, Any], folders: Folders = HERE) -> Any:
    """The policy that `spec` (`name` and parameters) asks for.

    Raises PolicyError for an unknown name, an unknown or missing parameter, or a value out of type or range.
    """
    name = spec.get("name")
    policy = find(kind, name, folders)
    given = {key: value for key, value in spec.items() if key != "name"}
    _check_parameters(str(name), policy, given)
    try:
        return policy(**given)
    except ValueError as error:
        key, _, rest = str(error).partition(": ")
        raise PolicyError(key if key in given else "name", rest if key in given else str(error)) from None
    except Exception as error:
        if is_of_the_house(policy):
            raise
        raise PolicyError("name", f"{name} cannot be made: {described(error)}") from error


def check(kind: str, spec: Mapping[str, Any], folders: Folders = HERE) -> None:
    """Raise PolicyError unless `spec` names a policy and its parameters."""
    create(kind, spec, folders)


def _check_parameters(name: str, policy: type, given: Mapping[str, Any]) -> None:
    takes = parameters(policy)
    for key in given:
        if key not in takes:
            choices = f"it takes {', '.join(takes)}" if takes else "it takes no parameters"
            raise PolicyError(key, f"{name} has no such parameter; {choices}")
    for key, parameter in takes.items():
        if parameter.default is inspect.Parameter.empty and key not in given:
            raise PolicyError(key, f"is missing; {name} needs it")
    hints = types(policy)
    for key, value in given.items():
        hint = hints.get(key, Any)
        if not _fits(value, hint):
            raise PolicyError(key, _misfit(value, hint))
        if isinstance(value, float) and not isfinite(value):
            raise PolicyError(key, f"must be a finite number, not {value}")


def _misfit(value: object, hint: Any) -> str:
    if get_origin(hint) is Literal:
        return f"{value!r} is unknown; choose {', '.join(str(choice) for choice in get_args(hint))}"
    return f"{value!r} is not of type {type_text(hint)}"


def types(policy: type) -> Mapping[str, Any]:
    """The types of a policy's parameters by name; none where those of a user's cannot be resolved."""
    try:
        return get_type_hints(inspect.getattr_static(policy, "__init__"))
    except (NameError, TypeError, AttributeError):
        if is_of_the_house(policy):
            raise
        return {}


def type_text(hint: Any) -> str:
    """A parameter's type as it is written."""
    return hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")


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
