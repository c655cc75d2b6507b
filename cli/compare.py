"""`llmsim compare`: two results of the same traffic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..scenarios.studies.compare import compare_folders
from ..scenarios.studies.compare_studies import compare_study_folders
from ..scenarios.studies.comparison_table import comparison_tables
from ..scenarios.studies.study_comparison_table import study_comparison_tables
from ..scenarios.studies.study_reading import is_study
from .options import AsJson
from .speech import people, print_json


def compare(
    a: Annotated[Path, typer.Argument(help="The folder of a run, of replications or of a sweep.", show_default=False)],
    b: Annotated[Path, typer.Argument(help="Another one, of the same traffic.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Compare two results of the same traffic request by request: by how much B is later than A, and how sure that is.

    Two sweeps, or two folders of --replications, are compared setting by setting, each figure paired by seed.

    Example: llmsim compare results/agent-001 results/agent-002
    """
    if is_study(a) or is_study(b):
        comparison = compare_study_folders(a, b)
        people.print(study_comparison_tables(comparison))
    else:
        comparison = compare_folders(a, b)
        people.print(comparison_tables(comparison))
    if as_json:
        print_json(comparison)
