"""A policy in a sentence: the first of its own docstring, with the values of its parameters in it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

from ..policies import registry
from ..policies.finding import HERE, Folders


def policy_words(kind: str, spec: Mapping[str, object], folders: Folders = HERE) -> str:
    """What the policy of a specification says of itself; `parameter` in it becomes the parameter's value."""
    policy = registry.find(kind, spec["name"], folders)
    values = {name: spec.get(name, parameter.default) for name, parameter in registry.parameters(policy).items()}
    paragraph = (inspect.getdoc(policy) or "").split("\n\n")[0].replace("\n", " ")
    return re.sub(r"`(\w+)`", lambda found: _value(found[1], values), paragraph)


def _value(name: str, values: Mapping[str, object]) -> str:
    """The value of a parameter with its unit; a word that is none stays as it stands."""
    if name not in values:
        return f"`{name}`"
    return f"{number(values[name])} s" if name.endswith("_s") else number(values[name])


def policy_name(spec: Mapping[str, object]) -> str:
    """Name and parameters: `fixed (tokens 2,048)`."""
    parameters = ", ".join(f"{key} {number(value)}" for key, value in spec.items() if key != "name")
    return f"{spec['name']} ({parameters})" if parameters else str(spec["name"])


def number(value: object) -> str:
    """A number with its thousands apart; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.10g}"
