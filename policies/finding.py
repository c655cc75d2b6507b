"""Policies that are none of the house's: in a file, in a module, or registered by another distribution.

./my_policy.py:MyPolicy     a file; a relative path is looked for in the folders that the caller gives
package.module:MyPolicy     whatever Python can import
my_policy                   an entry point of the group `llmsim.policies` called `scheduling.my_policy`
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import traceback
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from .errors import PolicyError

GROUP = "llmsim.policies"
FILE_MODULES = "llmsim_policy_file_"
"""How the modules made of files begin in `sys.modules`; a digest of path and content follows."""
_HOUSE = f"{__package__}."

Folders = Iterable[Path]
HERE = (Path(),)


def is_reference(name: str) -> bool:
    """Whether a name says where a class stands, rather than under which name it is registered."""
    return ":" in name


def is_of_the_house(policy: type) -> bool:
    """Whether a class ships with the package: it is trusted, others are watched."""
    return policy.__module__.startswith(_HOUSE)


def referred(name: str, folders: Folders = HERE) -> type:
    """The class that `FILE.py:Class` or `package.module:Class` names. Raises PolicyError."""
    where, _, class_name = name.rpartition(":")
    module = _of_file(where, folders) if where.endswith(".py") else _of_name(where)
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        own = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        ]
        choices = f"it has {', '.join(own)}" if own else "it has none"
        raise PolicyError("name", f"{where} has no class {class_name!r}; {choices}")
    return found


def file_of(name: str, folders: Folders = HERE) -> Path | None:
    """The file that `FILE.py:Class` names, in the first folder that has it; None where none has it."""
    where = name.rpartition(":")[0]
    paths = (folder / where for folder in folders)
    return next((path for path in paths if path.is_file()), None) if where.endswith(".py") else None


def source_digest(policy: type) -> str | None:
    """The SHA-256 of the file that a policy stands in; None for the house's own."""
    file = None if is_of_the_house(policy) else getattr(sys.modules.get(policy.__module__), "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else None


def _of_file(where: str, folders: Folders) -> ModuleType:
    folders = tuple(folders)
    path = file_of(f"{where}:", folders)
    if path is None:
        message = f"there is no file {folders[0] / where}; paths are relative to the scenario's folder"
        raise PolicyError("name", message)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise PolicyError("name", f"{where} cannot be read: {error.strerror}") from None
    path = path.resolve()
    name = FILE_MODULES + hashlib.sha256(bytes(path) + b"\0" + source).hexdigest()[:16]
    if name not in sys.modules:
        module = sys.modules[name] = ModuleType(name)
        module.__file__ = str(path)
        try:
            exec(compile(source, path, "exec"), module.__dict__)  # no __pycache__ beside a user's file
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            raise PolicyError("name", f"{where} cannot be loaded: {described(error)}") from error
    return sys.modules[name]


def _of_name(where: str) -> ModuleType:
    try:
        return importlib.import_module(where)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{where}.".startswith(f"{error.name}."):
            raise PolicyError("name", f"there is no module {error.name!r}; a file's name ends in .py") from None
        raise PolicyError("name", f"{where} cannot be loaded: {described(error)}") from error


def described(error: BaseException) -> str:
    """An exception in one line, with the innermost line of code that is none of the house's."""
    says = traceback.format_exception_only(error)[-1].strip()
    if isinstance(error, SyntaxError):
        return f"{says} (line {error.lineno})"
    house = Path(__file__).parent.parent
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _inside(f.filename, house)]
    return f"{says} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else says


def _inside(file: str, house: Path) -> bool:
    return file.startswith("<frozen") or any(file.startswith(str(house / part)) for part in ("policies", "sim"))


class PlugIn(NamedTuple):
    """A policy that another distribution has registered."""

    kind: str
    name: str
    distribution: str
    entry: EntryPoint

    def load(self) -> type:
        """Its class. Raises PolicyError, which names the distribution."""
        try:
            found = self.entry.load()
        except (Exception, SystemExit) as error:
            message = f"{self.entry.value} of {self.distribution} cannot be loaded: {described(error)}"
            raise PolicyError("name", message) from error
        if not isinstance(found, type):
            raise PolicyError("name", f"{self.entry.value} of {self.distribution} is no class")
        return found


def plug_ins(kinds: Iterable[str]) -> tuple[list[PlugIn], list[str]]:
    """What other distributions have registered as `KIND.NAME`, in order, and what is wrong with the rest."""
    kinds, found, wrong = tuple(kinds), [], []
    for entry in entry_points(group=GROUP):
        kind, _, name = entry.name.partition(".")
        distribution = entry.dist.name if entry.dist else "an unknown distribution"
        if kind in kinds and name and not is_reference(name):
            found.append(PlugIn(kind, name, distribution, entry))
        else:
            wrong.append(f"{distribution}: {GROUP}: {entry.name!r} must be KIND.NAME; kinds are {', '.join(kinds)}")
    return sorted(found, key=lambda p: (p.kind, p.name, p.distribution)), sorted(wrong)
