"""The project's own files as they lie in the working tree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

NOT_PACKAGED = frozenset({"tests", "notebooks", "docs"})
"""Folders of the root that hold no part of the package."""

GENERATED = frozenset({"build", "dist", "results", "__pycache__"})


def project_files(suffix: str, root: Path = ROOT) -> list[Path]:
    """All files of this suffix, relative to the root; no hidden or generated folders, no environments."""
    return sorted(path.relative_to(root) for path in _walk(root) if path.suffix == suffix)


def package_files(suffix: str, root: Path = ROOT) -> list[Path]:
    """The project's files of this suffix that belong to the package."""
    return [path for path in project_files(suffix, root) if path.parts[0] not in NOT_PACKAGED]


def packages(root: Path = ROOT) -> list[str]:
    """The dotted names of all folders that hold Python files of the package."""
    folders = {path.parent for path in package_files(".py", root)}
    return sorted(".".join(("llmsim", *folder.parts)) for folder in folders)


def _walk(root: Path) -> Iterator[Path]:
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [name for name in subfolders if _is_ours(Path(folder, name))]
        yield from (Path(folder, name) for name in files)


def _is_ours(folder: Path) -> bool:
    return not (folder.name.startswith(".") or folder.name in GENERATED or (folder / "pyvenv.cfg").exists())
