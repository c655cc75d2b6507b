"""`llmsim decisions`: the core step by step, without time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..scenarios.case_reading import CaseError, read_case
from ..scenarios.log_comparison import first_difference
from ..scenarios.log_writing import write_log
from ..scenarios.vllm_decisions import VllmDecisions
from .speech import say


def decisions(
    case: Annotated[Path, typer.Argument(help="A case: JSON, gzipped or not.", show_default=False)],
    preset: Annotated[str, typer.Option(help="The engine whose decisions are wanted.")] = "vllm",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the log here, not on stdout.")] = None,
    check_log: Annotated[bool, typer.Option("--check", help="Compare with the log that the case carries.")] = False,
) -> None:
    """Drive the engine core step by step, without time, and print what it decided, one JSON object a step.

    Example: llmsim decisions tests/golden/vllm/crowded.json.gz --check
    """
    if preset != "vllm":
        raise typer.BadParameter(f"--preset: '{preset}' is unknown; choose vllm")
    loaded = read_case(case)
    if check_log and "log" not in loaded:
        raise CaseError(f"{case}: log: is missing; --check compares with it")
    try:
        lines = VllmDecisions(loaded).log()
        if check_log:
            report_check(case, loaded, first_difference(loaded["log"], lines))
        elif output is not None:
            write_log(output, lines)
        else:
            for line in lines:
                print(json.dumps(line, separators=(",", ":")))
    except CaseError:
        raise
    except ValueError as error:
        raise CaseError(f"{case}: {error}") from None


def report_check(path: Path, case: dict[str, Any], difference: str | None) -> None:
    """Say whether a decision log is the case's own; exit 1 if not."""
    if difference is None:
        say(f"{path}: {len(case['log']):,} steps are identical")
    else:
        say(f"{path}: {difference}")
        raise typer.Exit(1)
