"""`llmsim plot`: the picture of a result folder, or one line on why there is none."""

from __future__ import annotations

from pathlib import Path

from ..sim.plots import ResultFrames, plot_result
from .errors import ScenarioError
from .writable import check_file, making


def draw(result: Path, picture: Path) -> None:
    """Write the picture of a result folder. Raises ScenarioError for a folder that is none, or no place to write."""
    if not (result / "summary.json").is_file():
        raise ScenarioError(result, None, "is not a result folder: it has no summary.json")
    check_file(picture)
    try:
        frames = ResultFrames.read(result)
    except (OSError, ValueError) as error:
        raise ScenarioError(result, None, f"cannot be read: {error}") from None
    try:
        with making(picture):
            plot_result(frames, picture)
    except (KeyError, TypeError) as error:
        raise ScenarioError(result / "summary.json", None, f"is not what a run writes: {error!r}") from None
