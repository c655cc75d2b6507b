"""A command imports what it needs and no more: the lists of commands are there at once, and all in them works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from llmsim.cli import app
from llmsim.cli.lazy import LazyCommands

ROOT = Path(__file__).parents[1]
SLOW = ("matplotlib", "scipy.optimize", "joblib", "torch")
CHECK = """
import sys
from llmsim.cli import main
try:
    main(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code, ended.code
print(",".join(name for name in {slow} if name in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["calibrate", "--help"],
        ["list", "gpus"],
        ["check", "scenarios/agent.yaml"],
        ["run", "scenarios/agent.yaml", "--set", "workload.requests=2", "-o"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_nothing_is_imported_that_takes_long_and_is_not_needed(arguments: list[str], tmp_path: Path) -> None:
    given = [*arguments, str(tmp_path / "result")] if arguments[-1] == "-o" else arguments
    command = [sys.executable, "-c", CHECK.format(slow=SLOW), *given]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "", done.stderr


def groups() -> list[LazyCommands]:
    """The program's commands, and those of its groups."""
    program = get_command(app).commands  # type: ignore[attr-defined]
    inner = [getattr(command, "commands", None) for command in program.values()]
    return [program, *(commands for commands in inner if isinstance(commands, LazyCommands))]


def test_every_command_in_a_list_is_there_and_says_on_one_line_what_it_does() -> None:
    found = groups()
    assert len(found) == 2
    for commands in found:
        for name, command in commands.items():
            assert command.name == name
            assert command.help
            assert 10 < len(commands.table[name].says) <= 80 - len("  calibrate  ")
            assert commands.table[name].says.endswith(".")


def test_every_file_of_a_command_is_in_a_list() -> None:
    places = {command.place.partition(".")[0] for commands in groups() for command in commands.table.values()}
    files = [path for path in (ROOT / "cli").glob("*.py") if path.stem not in ("__init__", "app", "lazy", "speech")]
    assert {path.stem for path in files if not path.stem.endswith("options")} == places


def test_a_command_that_is_not_there_is_told_with_what_may_be_meant() -> None:
    done = subprocess.run([sys.executable, "-m", "llmsim", "sweeep"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "error: No such command 'sweeep'. Did you mean 'sweep'?\n")
