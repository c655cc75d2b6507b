"""Commands that are imported when they are asked for: `llmsim run` need not wait for what `llmsim plot` draws with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group


class Command(NamedTuple):
    """Where a command is, and what the list of commands says of it."""

    place: str
    """`module.name` in this package: of a function, or of the Typer of a group."""
    says: str
    """What it does, on one line of the list."""


class LazyCommands(Mapping[str, Any]):
    """click's commands by name, each built when it is first asked for."""

    def __init__(self, table: Mapping[str, Command]) -> None:
        self.table = table
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = _built(name, self.table[name].place)
        return self._built[name]

    def get(self, name: str, default: Any = None) -> Any:
        """As of any mapping, but a KeyError of a module that is imported is no missing command."""
        return self[name] if name in self.table else default

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)


class LazyGroup(TyperGroup):
    """A group of such commands. A subclass names its `table`; they are listed in its order."""

    table: ClassVar[Mapping[str, Command]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = LazyCommands(self.table)  # type: ignore[assignment]

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """All names."""
        return list(self.table)

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """The list in the group's help: none is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.says) for name, command in self.table.items()])


def _built(name: str, place: str) -> Any:
    module, _, attribute = place.rpartition(".")
    found: Any = getattr(import_module(f".{module}", __package__), attribute)
    if isinstance(found, typer.Typer):
        command: Any = get_group(found)
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        command = get_command(alone)
    command.name = name
    return command
