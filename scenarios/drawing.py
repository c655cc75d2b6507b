"""`llmsim plot`: the picture of a result folder, or one line on why there is none."""

from __future__ import annotations

from pathlib import Path

from ..sim.plots import plot_result
from .errors import ScenarioError


def draw(result: Path, picture: Path) -> None:
    """Write the picture of a result folder. Raises ScenarioError for a folder that is none, or no place to write."""
    if not (result / "summary.json").is_file():
        raise ScenarioError(result, None, "is not a result folder: it has no summary.json")
    try:
        plot_result(result, picture)
    except OSError as error:
        raise ScenarioError(picture, None, f"cannot be made: {error.strerror or error}") from None
