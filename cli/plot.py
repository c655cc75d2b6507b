"""`llmsim plot`: a result as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..scenarios.drawing import draw
from .speech import say


def plot(
    result: Annotated[Path, typer.Argument(help="A result folder.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The picture; RESULT/result.png where left out.")
    ] = None,
) -> None:
    """Draw a result: TTFT and ITL, running and waiting requests, KV use over time.

    Example: llmsim plot results/agent-001
    """
    picture = output or result / "result.png"
    draw(result, picture)
    say(f"picture in {picture}")
