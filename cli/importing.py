"""`llmsim import`: a scenario out of a command line of vLLM or SGLang."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..scenarios.errors import ScenarioError
from ..scenarios.importing.imported import DEFAULT_GPU, Wishes, import_commands
from ..scenarios.writable import check_file
from .speech import say, warn


def import_command(
    command: Annotated[
        list[str] | None,
        typer.Argument(help="A command in quotes, several of them, or after -- as it stands.", show_default=False),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("-f", "--file", help="A file with shell commands, - for standard input.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the YAML here, not on stdout.", show_default=False),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(help=f"A name of `llmsim list gpus`, or a data sheet; {DEFAULT_GPU} where left out."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="A name of `llmsim list models`, or a config.json, in place of the command's model."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The scenario's name.", show_default=False)] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output where it exists.")] = False,
) -> None:
    """Write the scenario that command lines of vLLM or SGLang describe: a server, a benchmark, or both.

    Known are vllm serve, vllm bench serve, throughput and latency, sglang serve, and python -m of
    vllm.entrypoints.openai.api_server, sglang.launch_server, sglang.bench_serving and sglang.bench_offline_throughput.
    Flags that a scenario cannot carry are named on stderr and at the top of the YAML.

    Example: llmsim import "vllm serve Qwen/Qwen3-8B --max-num-seqs 64" --gpu l40s
    """
    if output is not None:
        if output.exists() and not force:
            raise ScenarioError(output, None, "exists already; choose another file, or --force to replace it")
        check_file(output)
    imported = import_commands(_text(command or [], file), Wishes(gpu, model, name, output))
    for note in imported.notes:
        warn(note)
    if output is None:
        print(imported.text, end="")
        return
    output.write_text(imported.text, encoding="utf-8")
    say(f"scenario in {output}; try llmsim check {shlex.quote(str(output))}")


def _text(words: list[str], file: Path | None) -> str:
    """What to read: the words of one command, or quoted commands, or a file."""
    if file is None:
        is_quoted = len(words) < 2 or any(mark in words[0] for mark in " \t\n")
        return "\n".join(words) if is_quoted else shlex.join(words)
    if words:
        raise typer.BadParameter("give a command or --file, not both")
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(file, None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScenarioError(file, None, "is not UTF-8") from None
