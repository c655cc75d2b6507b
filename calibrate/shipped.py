"""The profiles that come with the package, by name."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "profiles"


def shipped_profiles() -> dict[str, Path]:
    """Each one's folder, in order of names."""
    return {header.parent.name: header.parent for header in sorted(FOLDER.glob("*/profile.yaml"))}
