"""What a command is given as a profile or table: a folder, or the name of a profile that comes with the package."""

from __future__ import annotations

from pathlib import Path

from ..sim.cost_model.profile import HEADER, Profile, read_table
from ..sim.cost_model.timings import ProfileError
from .shipped import shipped_profiles

POINTS = "points.jsonl"
"""What `llmsim profile` adds to while it measures; the header is written at the end."""


def read_given(given: Path) -> Profile:
    """The profile or table at a path, or else the profile of this name; ProfileError says why there is none."""
    return read_table(path_of(given))


def path_of(given: Path) -> Path:
    """Where that is. Raises ProfileError where there is nothing, or nothing finished."""
    path = given if given.exists() else shipped_profiles().get(str(given), given)
    folder = path.parent if path.name == HEADER else path
    if (folder / POINTS).is_file() and not (folder / HEADER).exists():
        raise ProfileError(
            f"{given}: holds an unfinished profile; the same `llmsim profile` command in the same folder finishes it"
        )
    if not folder.exists():
        raise ProfileError(f"{given}: is neither the folder of a profile or table nor a name of `llmsim list profiles`")
    return path
