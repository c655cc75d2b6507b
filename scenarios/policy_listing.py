"""Policies as tables: all that there are, what each requires, and everything about one."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from ..policies import registry
from ..policies.conformance import FEATURES, kinds_of, requirements
from ..policies.errors import PolicyError
from ..policies.finding import Folders, is_reference, plug_ins, referred
from .requirements import COMES_WITH
from .section import suggestion


class Listed(NamedTuple):
    """A policy under the name by which a scenario asks for it."""

    kind: str
    name: str
    policy: type


def listed() -> tuple[list[Listed], list[str]]:
    """All policies that have a name, and sentences on plug-ins that are broken."""
    known = [Listed(kind, name, cls) for kind in registry.KINDS for name, cls in registry.policies(kind).items()]
    found, wrong = plug_ins(registry.KINDS)
    for plug_in in found:
        try:
            known.append(Listed(plug_in.kind, plug_in.name, registry.find(plug_in.kind, plug_in.name)))
            if known[-1].policy.__module__ != plug_in.entry.module:
                raise PolicyError("name", "the name is taken")
        except PolicyError as error:
            wrong.append(f"{plug_in.distribution}: {plug_in.kind}.{plug_in.name}: {error}")
    return sorted(set(known), key=lambda item: (registry.KINDS.index(item.kind), item.name)), wrong


def policy_table() -> Table:
    """Policies by kind, what they do, and the names of their parameters."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("kind", "name", "what it does (parameters)"):
        table.add_column(column, no_wrap=column in ("kind", "name"))
    before = None
    for kind, name, policy in listed()[0]:
        parameters = ", ".join(key for key, _ in _parameters(policy))
        what = f"{_summary(policy)} ({parameters})" if parameters else _summary(policy)
        table.add_row("" if kind == before else kind, name, escape(what))
        before = kind
    return table


def requirement_table() -> Group:
    """Who requires what; all combinations that meet this are valid."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    known = listed()[0]
    needs = [(_short(item, known), requirements(item.policy)) for item in known]
    columns = [feature for feature in FEATURES if any(feature in required for _, required in needs)]
    columns += sorted({feature for _, required in needs for feature in required} - {*FEATURES})
    table.add_column("policy", no_wrap=True)
    for number in range(1, len(columns) + 1):
        table.add_column(str(number), justify="center")
    for name, required in needs:
        if required:
            table.add_row(name, *("●" if feature in required else "" for feature in columns))
    legend = [
        f"{number} {feature}: {COMES_WITH.get(feature, 'policies.' + feature)}"
        for number, feature in enumerate(columns, 1)
    ]
    valid = "All combinations are valid in which each policy has what it requires (●); others require nothing."
    return Group(*([table] if columns else []), *legend, valid)


def _short(item: Listed, known: list[Listed]) -> str:
    """The name, with the kind where another kind has the name too."""
    shared = sum(other.name == item.name for other in known) > 1
    return f"{item.kind}/{item.name}" if shared else item.name


def policies_json() -> dict[str, Any]:
    """By kind and name, the parameters and requirements of every policy."""
    known: dict[str, Any] = {kind: {} for kind in registry.KINDS}
    for item in listed()[0]:
        facts = policy_facts(item)
        known[item.kind][item.name] = {"parameters": facts["parameters"], "requires": facts["requires"]}
    return known


def named(name: str, folders: Folders) -> Listed:
    """The policy that `NAME`, `KIND/NAME`, `FILE.py:Class` or `module:Class` names. Raises PolicyError."""
    kind, slash, rest = name.partition("/")
    if slash and kind in registry.KINDS:
        return Listed(kind, rest, registry.find(kind, rest, folders))
    if is_reference(name):
        policy = referred(name, folders)
        kinds = kinds_of(policy)
        if not kinds:
            message = f"{name} is a policy of no kind; KIND/{name} says what it lacks, with {', '.join(registry.KINDS)}"
            raise PolicyError("name", message)
        found = [Listed(kind, name, policy) for kind in kinds]
    else:
        found = [item for item in listed()[0] if item.name == name]
    if not found:
        raise PolicyError("name", f"{name!r} is unknown; {suggestion(name, {item.name for item in listed()[0]})}")
    if len(found) > 1:
        choices = ", ".join(f"{item.kind}/{item.name}" for item in found)
        raise PolicyError("name", f"{name!r} is a policy of several kinds; choose {choices}")
    return found[0]


def policy_facts(item: Listed) -> dict[str, Any]:
    """Description, parameters, requirements and file of a policy."""
    file = inspect.getsourcefile(item.policy)
    return {
        "kind": item.kind,
        "name": item.name,
        "description": inspect.getdoc(item.policy) or "",
        "parameters": dict(_parameters(item.policy)),
        "requires": list(requirements(item.policy)),
        "file": str(Path(file).resolve()) if file else None,
    }


def _parameters(policy: type) -> Iterator[tuple[str, dict[str, Any]]]:
    hints = registry.types(policy)
    for name, parameter in registry.parameters(policy).items():
        facts: dict[str, Any] = {"type": registry.type_text(hints[name]) if name in hints else "any"}
        if parameter.default is not parameter.empty:
            facts["default"] = parameter.default
        yield name, facts


def _default(parameter: dict[str, Any]) -> str:
    """A parameter's default as a YAML would have it; nothing where it must be given."""
    return json.dumps(parameter["default"], default=repr) if "default" in parameter else ""


def policy_text(item: Listed) -> Iterator[str | Table]:
    """The same for people."""
    facts = policy_facts(item)
    yield f"[bold]{item.kind}/{escape(item.name)}[/]\n\n{escape(facts['description'])}\n"
    if facts["parameters"]:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in ("parameter", "type", "default"):
            table.add_column(column)
        for name, parameter in facts["parameters"].items():
            table.add_row(name, escape(parameter["type"]), escape(_default(parameter) or "must be given"))
        yield table
    else:
        yield "It takes no parameters."
    for feature in facts["requires"]:
        comes = f"comes with {COMES_WITH[feature]}" if feature in COMES_WITH else f"policies.{feature}"
        yield f"It requires {feature}: {FEATURES.get(feature, 'that policy')}; {comes}."
    yield f"It stands in {escape(str(facts['file']))}."


def _summary(policy: type) -> str:
    """The first paragraph of what it says of itself."""
    return (inspect.getdoc(policy) or "").split("\n\n")[0].replace("\n", " ")
