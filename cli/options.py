"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ScenarioPath = Annotated[Path, typer.Argument(help="A scenario's YAML file.", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a key: engine.max_num_seqs=64. May be given again.", metavar="KEY=VALUE"),
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes; one a core where left out.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
ForceProfile = Annotated[bool, typer.Option("--force", help="Replace a profile or table that is there already.")]
