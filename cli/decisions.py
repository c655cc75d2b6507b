"""`llmsim decisions`: the core step by step, without time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ..scenarios.case_reading import CaseError, read_case
from ..scenarios.log_comparison import first_difference
from ..scenarios.log_writing import write_log
from ..scenarios.radix_decisions import RadixDecisions
from ..scenarios.sglang_decisions import SglangDecisions
from ..scenarios.vllm_decisions import VllmDecisions
from .speech import say

PRESETS = ("vllm", "sglang")


def decisions(
    case: Annotated[Path, typer.Argument(help="A case: JSON, gzipped or not.", show_default=False)],
    preset: Annotated[str, typer.Option(help="The engine whose decisions are wanted.")] = "vllm",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the log here, not on stdout.")] = None,
    check_log: Annotated[bool, typer.Option("--check", help="Compare with the log that the case carries.")] = False,
) -> None:
    """Drive the engine core step by step, without time, and print what it decided, one JSON object a step.

    A case of operations on SGLang's radix tree (`--preset sglang`) drives that alone, one JSON object an operation.

    Example: llmsim decisions tests/golden/vllm/crowded.json.gz --check

    Example: llmsim decisions tests/golden/radix/lru-page16.json.gz --preset sglang --check
    """
    if preset not in PRESETS:
        raise typer.BadParameter(f"--preset: '{preset}' is unknown; choose {', '.join(PRESETS)}")
    loaded = read_case(case)
    if check_log and "log" not in loaded:
        raise CaseError(f"{case}: log: is missing; --check compares with it")
    try:
        lines = decision_log(case, loaded, preset)
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


def decision_log(path: Path, case: dict[str, Any], preset: str) -> Iterator[dict[str, Any]]:
    """The log of a case of either kind: a scheduler's `requests`, or a tree's `ops`."""
    if "ops" in case:
        if preset != "sglang":
            raise CaseError(f"{path}: ops: are operations on SGLang's radix tree; take --preset sglang")
        return RadixDecisions(case).log()
    return (SglangDecisions if preset == "sglang" else VllmDecisions)(case).log()


def report_check(path: Path, case: dict[str, Any], difference: str | None) -> None:
    """Say whether a decision log is the case's own; exit 1 if not."""
    if difference is None:
        say(f"{path}: {len(case['log']):,} {'operations' if 'ops' in case else 'steps'} are identical")
    else:
        say(f"{path}: {difference}")
        raise typer.Exit(1)
