"""Runs the command line for tests: in this process, or in one of its own where that matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from llmsim.cli import main


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """What it printed on stdout: one value of strict JSON and nothing else."""
        return strict_json(self.out)


def strict_json(text: str) -> Any:
    """JSON as the standard has it: no NaN, no infinity."""
    return json.loads(text, parse_constant=_no_number)


def _no_number(name: str) -> NoReturn:
    raise AssertionError(f"{name} is not JSON")


def llmsim(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """`llmsim ARGUMENTS` in this process."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert isinstance(stopped.value.code, int)
    return Outcome(stopped.value.code, captured.out, captured.err)


def start(
    *arguments: object, cwd: Path, module: str = "llmsim", variables: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """`python -m MODULE ARGUMENTS` in a process of its own; it finds the package where this process did."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **(variables or {})}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, env=environment, stdout=pipe, stderr=pipe, text=True, encoding="utf-8")


def finish(process: subprocess.Popen[str]) -> Outcome:
    """Wait for it."""
    out, err = process.communicate(timeout=300)
    return Outcome(process.returncode, out, err)


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every file under `folder`, by path in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
