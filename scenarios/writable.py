"""Whether output can go where it is asked for: told in one line, before the work that would be lost."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from .errors import ScenarioError


@contextmanager
def making(target: Path) -> Iterator[None]:
    """What the system says against it becomes a ScenarioError that names the target."""
    try:
        yield
    except OSError as error:
        raise ScenarioError(target, None, f"cannot be made: {error.strerror or error}") from error


def check_file(path: Path, *, makes_parents: bool = False) -> None:
    """Raises ScenarioError where no file can be written; leaves everything as it is.

    With `makes_parents` the folders above it need not be there, but must be such as can be made.
    """
    with making(path):
        _check_length(path)
        if path.is_file() or path.is_dir():
            path.open("ab").close()
        elif not path.exists():  # what else exists is a device or a pipe, whose reader would take this for the end
            TemporaryFile(dir=_nearest_above(path) if makes_parents else path.parent).close()


def check_folder(target: Path) -> None:
    """Raises ScenarioError where no folder can be made, nor those above it; leaves everything as it is."""
    check_name(target)
    with making(target):
        _check_length(_hidden(target, "partial"))
        TemporaryDirectory(dir=_nearest_above(target)).cleanup()


def _nearest_above(path: Path) -> Path:
    """The first above it that is there. None is made: a parallel command may be about to write in it."""
    return next(parent for parent in path.parents if os.path.lexists(parent))


def _check_length(path: Path) -> None:
    """Raises OSError where a name is too long, be it that of a folder yet to be made."""
    above = _nearest_above(path)
    for name in path.relative_to(above).parts:
        with suppress(FileNotFoundError):
            (above / name).lstat()


def check_name(target: Path) -> None:
    """Raises ScenarioError for a path such as `.` or `..`."""
    if target.name in ("", ".."):
        raise ScenarioError(target, None, "names no folder that could be made or replaced")


def make_parents(target: Path) -> list[Path]:
    """Make the folders above `target`; those that were missing, deepest first. Raises ScenarioError."""
    with making(target):
        missing = [parent for parent in target.parents if not parent.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
    return missing


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove them, deepest first, but for those in which something stands by now."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def hidden_sibling(target: Path, purpose: str) -> Path:
    """A new folder beside `target` that nobody takes for a result. Raises ScenarioError."""
    folder = _hidden(target, purpose)
    with making(target):
        folder.mkdir()
    return folder


def _hidden(target: Path, purpose: str) -> Path:
    return target.with_name(f".{target.name}.{purpose}-{secrets.token_hex(4)}")
