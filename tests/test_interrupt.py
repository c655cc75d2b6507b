"""Ctrl-C leaves nothing that looks like a result, whenever it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from llmsim.scenarios import run
from llmsim.scenarios.results import ResultFolder
from llmsim.tests.support.command_line import contents, finish, llmsim, start
from llmsim.tests.support.scenario_files import MINIMAL, write_scenario
from llmsim.tests.support.tree import ROOT

LONG = MINIMAL.replace("independent", "independent, requests: 10000000, rate: 1, output_tokens: 4000")
"""More than anyone waits for."""

MESSAGE = "interrupted; nothing was written\n"

INTERRUPTED = """
import runpy
import signal
import sys


class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {moment!r}:
            signal.raise_signal(signal.SIGINT)


sys.meta_path.insert(0, Interrupt())
{program}
"""
"""A program that gets Ctrl-C when it begins to import a module."""


@contextmanager
def signals_as_in_a_terminal() -> Iterator[None]:
    """A background job may be deaf to SIGINT, and its children would inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for_rows(process: subprocess.Popen[str], folder: Path) -> None:
    """Until the run writes its tables into the hidden folder."""
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if any(path.stat().st_size > 10_000 for path in folder.glob(".out.partial-*/steps.parquet")):
            return
        time.sleep(0.05)
    pytest.fail(f"the run wrote nothing: {process.poll()}, {sorted(os.listdir(folder))}")


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
@pytest.mark.parametrize(
    ("options", "sent"),
    [(["--journal"], signal.SIGINT), (["--force"], signal.SIGINT), (["--journal"], signal.SIGTERM)],
)
def test_ctrl_c_in_the_middle_of_a_run_leaves_what_was_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], sent: signal.Signals
) -> None:
    if "--force" in options:
        small = ["--set", "workload.requests=3"]
        assert llmsim(capsys, "run", write_scenario(tmp_path), "-o", tmp_path / "out", *small).code == 0
    path = write_scenario(tmp_path, LONG)
    before = contents(tmp_path)
    with signals_as_in_a_terminal():
        process = start("run", path, "-o", "out", *options, cwd=tmp_path)
    try:
        wait_for_rows(process, tmp_path)
        assert not (tmp_path / "out").exists() or "--force" in options
        process.send_signal(sent)
        done = finish(process)
    finally:
        process.kill()
    assert (done.code, done.out, done.err) == (130, "", MESSAGE)
    assert contents(tmp_path) == before
    assert len(os.listdir(tmp_path)) == len({name.split("/")[0] for name in before})


@pytest.mark.parametrize(
    ("owner", "moment"),
    [
        (run, "build_workload"),
        (run, "Recorder"),
        (run, "summarize"),
        (ResultFolder, "write_scenario"),
        (ResultFolder, "_publish"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_ctrl_c_at_any_other_moment_leaves_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    owner: object,
    moment: str,
) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, moment, interrupted)
    path = write_scenario(tmp_path, MINIMAL.replace("independent", "independent, requests: 3"))
    done = llmsim(capsys, "run", path, "-o", tmp_path / "deep" / "out")
    assert (done.code, done.out, done.err) == (130, "", MESSAGE)
    assert os.listdir(tmp_path) == ["s.yaml"]


def console_script() -> str:
    """What pip writes for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, function = project["scripts"]["llmsim"].split(":")
    return f"from {module} import {function}\nsys.exit({function}())"


@pytest.mark.parametrize("moment", ["llmsim.cli", "numpy", "llmsim.cli.listing"])
@pytest.mark.parametrize(
    "program",
    ["runpy.run_module('llmsim', run_name='__main__', alter_sys=True)", console_script()],
    ids=["module", "script"],
)
def test_ctrl_c_while_modules_are_imported_is_as_quiet(tmp_path: Path, program: str, moment: str) -> None:
    text = INTERRUPTED.format(moment=moment, program=program)
    (tmp_path / "interrupted.py").write_text(text, encoding="utf-8")
    with signals_as_in_a_terminal():
        done = finish(start("list", "models", cwd=tmp_path, module="interrupted"))
    assert (done.code, done.out, done.err) == (130, "", MESSAGE)
