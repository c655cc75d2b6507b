"""Tells flags from values by a table, and applies what the table says of each."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..errors import ScenarioError
from .draft import Draft
from .shell import is_unknown
from .values import NotCarried

Takes: TypeAlias = Literal["nothing", "one", "several"]
NO_MEANING = "has no meaning here"
NOT_SUPPORTED = "is not supported"
UNKNOWN = "is unknown here"


@dataclass(frozen=True, slots=True)
class Carried:
    """A flag with one value that sets a key."""

    path: str
    read: Callable[[str], Any]
    takes: Takes = "one"


@dataclass(frozen=True, slots=True)
class Switch:
    """A flag that is on when given, off as `--no-…`, and sets a key to that, or to the opposite."""

    path: str
    on: bool = True
    takes: Takes = "nothing"


@dataclass(frozen=True, slots=True)
class ByCode:
    """A flag that means something together with others."""

    read: Callable[[str], Any]
    takes: Takes = "one"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A flag that cannot be carried over, unless it has one of the values that change nothing."""

    why: str
    takes: Takes = "one"
    harmless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AsIs:
    """A flag that asks for what a scenario does anyway."""

    takes: Takes = "nothing"


Rule: TypeAlias = Carried | Switch | ByCode | Dropped | AsIs
Table: TypeAlias = Mapping[str, Rule]


@dataclass(frozen=True, slots=True)
class Given:
    """A flag as it was given: its name in the table, where it has one, and its values."""

    name: str
    spelled: str
    rule: Rule | None
    values: tuple[str, ...]
    negated: bool = False

    @property
    def shown(self) -> str:
        """The flag and its values, as they were written."""
        return " ".join((self.spelled, *self.values))


def dropped(kind: str, families: Mapping[str, str]) -> dict[str, Rule]:
    """Rules from lists of names by the reason; `name!` takes no value, `name*` several, `name=1` is harmless at 1."""
    rules: dict[str, Rule] = {}
    for reason, names in families.items():
        for word in names.split():
            name, _, harmless = word.partition("=")
            takes: Takes = {"!": "nothing", "*": "several"}.get(name[-1], "one")  # type: ignore[assignment]
            values = tuple(harmless.split("|")) if harmless else ()
            rules[name.rstrip("!*")] = Dropped(f"{kind}: {reason}", takes, values)
    return rules


def parse(words: tuple[str, ...], table: Table, aliases: Mapping[str, str]) -> tuple[list[str], list[Given]]:
    """What stands by itself, and the flags in order. Raises ScenarioError for a flag without its value."""
    alone: list[str] = []
    flags: list[Given] = []
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if not _is_flag(word):
            alone.append(word)
        elif word != "--":
            spelled, equals, value = word.partition("=")
            name, rule, negated = _look_up(spelled, table, aliases)
            following = [value] if equals else _values_after(words[place:], spelled, rule)
            place += 0 if equals else len(following)
            flags.append(Given(name, spelled, rule, tuple(following), negated))
    return alone, flags


def _is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not word[1].isdigit() and word[1] != "."


def _look_up(spelled: str, table: Table, aliases: Mapping[str, str]) -> tuple[str, Rule | None, bool]:
    """Name and rule of a flag, and whether it is the `--no-…` of one; beginnings do, as argparse has it."""
    name = spelled.lstrip("-").replace("_", "-").partition(".")[0].rstrip("+")
    name = aliases.get(name, name)
    if name in table:
        return name, table[name], False
    if name.startswith("no-") and isinstance(table.get(name[3:]), Switch | Dropped):
        return name[3:], table[name[3:]], True
    longer = [known for known in table if spelled.startswith("--") and known.startswith(name)]
    return (longer[0], table[longer[0]], False) if len(longer) == 1 else (name, None, False)


def _values_after(words: tuple[str, ...], spelled: str, rule: Rule | None) -> list[str]:
    """The words that belong to the flag before them; all up to the next flag where it is unknown."""
    up_to_next = next((place for place, word in enumerate(words) if _is_flag(word)), len(words))
    takes: Takes = rule.takes if rule else "several"
    if takes == "nothing":
        is_bool = up_to_next and words[0].lower() in ("true", "false")
        return [words[0]] if is_bool else []
    if takes == "several":
        return list(words[:up_to_next])
    if not up_to_next:
        raise ScenarioError("command", spelled, "needs a value")
    return [words[0]]


def apply(flags: list[Given], table: Table, draft: Draft) -> Answers:
    """Put into the draft what the flags carry, and what they do not; those that code must read are returned."""
    by_code: dict[str, Given] = {}
    for flag in flags:
        match flag.rule:
            case Carried(path, read):
                try:
                    draft.set(path, read_value(flag, read), flag.shown)
                except NotCarried as error:
                    draft.not_carried(flag.shown, str(error))
            case Switch(path, on):
                draft.set(path, _is_on(flag) == on, flag.shown)
            case ByCode():
                by_code[flag.name] = flag
            case Dropped(why, _, harmless):
                is_off = flag.negated and why.startswith(NOT_SUPPORTED)
                if not is_off and (not flag.values or flag.values[0] not in harmless):
                    draft.not_carried(flag.spelled, why)
            case AsIs():
                pass
            case None:
                near = difflib.get_close_matches(flag.name, table, n=1, cutoff=0.8)
                draft.not_carried(flag.shown, UNKNOWN + (f"; did you mean --{near[0]}?" if near else ""))
    return Answers(by_code, draft)


def _is_on(flag: Given) -> bool:
    on = not flag.values or flag.values[0].lower() not in ("false", "0")
    return on != flag.negated


def read_value(flag: Given, read: Callable[[str], Any]) -> Any:
    """The value that a flag has; NotCarried where a scenario does not know it, ScenarioError where it is wrong."""
    value = flag.values[0] if flag.values else ""
    if is_unknown(value):
        says = f"{value} is the shell's to fill in; set the variable before the command, or write its value"
        raise ScenarioError("command", flag.spelled, says)
    try:
        return read(value)
    except (ValueError, OverflowError):
        raise ScenarioError("command", flag.spelled, f"{value!r} is not the number that it takes") from None


class Answers:
    """The flags that mean something together, as code asks for them."""

    def __init__(self, given: dict[str, Given], draft: Draft) -> None:
        self._given = given
        self._draft = draft
        self._asked: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def shown(self, name: str) -> str:
        """A flag that was given, with its values, as it was written."""
        return self._given[name].shown

    def values(self, name: str) -> tuple[str, ...]:
        """All values of a flag that takes several."""
        self._asked.add(name)
        return self._given[name].values if name in self._given else ()

    def get(self, name: str, default: Any) -> Any:
        """A flag's value, or the default where it is not given or cannot be carried over."""
        self._asked.add(name)
        if (flag := self._given.get(name)) is None:
            return default
        assert isinstance(flag.rule, ByCode)
        try:
            return not flag.negated if flag.rule.takes == "nothing" else read_value(flag, flag.rule.read)
        except NotCarried as error:
            self._draft.not_carried(flag.shown, str(error))
            return default

    def drop_the_rest(self, why: str) -> None:
        """Tell the draft of the flags that nobody has asked for."""
        for name, flag in self._given.items():
            if name not in self._asked:
                self._draft.not_carried(flag.shown, why)
