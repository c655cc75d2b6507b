"""What other processes are given to do: they import it by this name, wherever they stand."""

from __future__ import annotations

import os


def where(_: int) -> str:
    """The folder in which it is carried out."""
    return os.getcwd()


def die(_: int) -> None:
    """End the process as a kill does."""
    os._exit(9)
