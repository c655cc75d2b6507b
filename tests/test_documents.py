"""Every `llmsim …` line that a document, a scenario's comment or a help text shows is one that works."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from llmsim.cli import ClickException, app
from llmsim.scenarios.loading import load_scenario
from llmsim.tests.support.tree import ROOT, project_files

DOCUMENTS = [ROOT / path for path in project_files(".md") if path.name != "CHANGELOG.md"]
SCENARIOS = sorted(ROOT.glob("scenarios/*.yaml"))

_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SEPARATORS = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "2>"})


def commands(text: str) -> Iterator[list[str]]:
    """The arguments of every `llmsim` that a text calls at the beginning of a line or of a part of one."""
    for line in text.replace("\\\n", " ").splitlines():
        for is_separator, words in groupby(_words(line), _SEPARATORS.__contains__):
            arguments = None if is_separator else _arguments(list(words))
            if arguments is not None:
                yield arguments


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # prose, with an apostrophe
        return []


def _arguments(words: list[str]) -> list[str] | None:
    """What follows `llmsim`, `.venv/bin/llmsim` or `python -m llmsim`; None where something else is called."""
    if words[:1] == ["$"]:
        words = words[1:]
    called = [Path(word).name for word in words[:3]]
    if called[:1] == ["llmsim"]:
        return words[1:]
    return words[3:] if called in (["python", "-m", "llmsim"], ["python3", "-m", "llmsim"]) else None


def in_blocks(markdown: str) -> Iterator[list[str]]:
    """The commands in the code blocks of a Markdown text."""
    for block in _BLOCK.findall(markdown):
        yield from commands(block)


def assert_works(arguments: list[str]) -> None:
    """Command, options and scenario keys exist, and so do the files of this repository that it names."""
    group = get_command(app)
    if not arguments or "--help" in arguments:
        return
    try:
        given = group.make_context("llmsim", list(arguments)).params
        name, *rest = arguments
        if not name.startswith("-"):
            assert name in group.commands, f"llmsim {name}: no such command"  # type: ignore[attr-defined]
            command = group.commands[name]  # type: ignore[attr-defined]
            if hasattr(command, "with_command"):
                name, *rest = command.with_command(rest)
                command = command.commands[name]
            given = command.make_context(name, list(rest)).params
    except ClickException as error:
        pytest.fail(f"llmsim {shlex.join(arguments)}: {error}")
    for word in rest:
        if word.startswith(("scenarios/", "tests/")):
            assert (ROOT / word).exists(), word
    scenario = given.get("scenario")
    if scenario is not None and str(scenario).startswith("scenarios/"):
        load_scenario(ROOT / scenario, given["overrides"] or [])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_in_a_document_work(path: Path) -> None:
    for arguments in in_blocks(path.read_text(encoding="utf-8")):
        assert_works(arguments)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_commands_in_the_comment_of_a_shipped_scenario_work(path: Path) -> None:
    comment = re.sub(r"(?m)^#", "", path.read_text(encoding="utf-8").partition("\nname:")[0])
    found = list(commands(comment))
    assert found
    for arguments in found:
        assert_works(arguments)


def subcommands(command: Any) -> Iterable[tuple[str, Any]]:
    """The commands of a command that is a group."""
    return getattr(command, "commands", {}).items()


def test_the_example_in_the_help_of_every_command_works() -> None:
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        for names, one in ((name,), command), *(((name, sub), inner) for sub, inner in subcommands(command)):
            (example,) = commands(one.help.partition("Example: ")[2])
            assert tuple(example[: len(names)]) == names
            assert_works(example)


def test_commands_are_found_and_wrong_ones_noticed() -> None:
    text = """Prose with llmsim in it, and it's fine.
```sh
llmsim --version   # the version
$ .venv/bin/llmsim run scenarios/agent.yaml \\
      --set workload.rate=8 | tee log
python3 -m llmsim list gpus && llmsim list models > models.txt
git clone llmsim
```
    llmsim not in a block
"""
    right = [["--version"], ["run", "scenarios/agent.yaml", "--set", "workload.rate=8"], ["list", "gpus"]]
    assert list(in_blocks(text)) == [*right, ["list", "models"]]
    for arguments in right:
        assert_works(arguments)
    wrong = [
        "--bogus",
        "runn x",
        "run",
        "run x --bogus",
        "run scenarios/none.yaml",
        "run scenarios/agent.yaml --set workload.x=1",
    ]
    for line in wrong:
        with pytest.raises((AssertionError, pytest.fail.Exception, ValueError)):
            assert_works(line.split())
