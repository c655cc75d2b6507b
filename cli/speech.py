"""What the command line says: tables and warnings to people on stderr, JSON to programs on stdout."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.markup import escape

people = Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """One line on stderr, however long."""
    people.print(escape(text), soft_wrap=True)


def warn(text: str) -> None:
    """Say on stderr what was found odd and what was done about it."""
    people.print(f"[yellow]warning:[/] {escape(text)}", soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON object on stdout."""
    print(json.dumps(value, indent=2, allow_nan=False))
