"""`llmsim import`: commands from arguments, a file or standard input; YAML out."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from llmsim.scenarios.loading import load_scenario
from llmsim.tests.support.command_line import llmsim

Capture = pytest.CaptureFixture[str]
SERVE = "vllm serve Qwen/Qwen3-8B --max-num-seqs 64 --port 8000"
WARNING = "warning: --port has no meaning here: where the server listens, and who may ask\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_quoted_command_words_and_a_file_are_the_same(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    quoted = llmsim(capsys, "import", SERVE)
    assert (quoted.code, quoted.err) == (0, WARNING)
    assert "max_num_seqs: 64" in quoted.out
    assert llmsim(capsys, "import", "--", *SERVE.split()) == quoted
    Path("serve.sh").write_text(f"#!/bin/sh\n{SERVE}\n")
    assert llmsim(capsys, "import", "--file", "serve.sh") == quoted
    monkeypatch.setattr("sys.stdin", io.StringIO(SERVE))
    assert llmsim(capsys, "import", "-f", "-") == quoted


def test_several_quoted_commands_make_one_scenario(capsys: Capture) -> None:
    done = llmsim(capsys, "import", SERVE, "vllm bench serve --num-prompts 9", "--gpu", "l40s", "--name", "mine")
    assert done.code == 0
    assert "# Imported from vllm serve and vllm bench serve.\n" in done.out
    assert "name: mine\n" in done.out
    assert "gpu: l40s\n" in done.out
    assert "requests: 9\n" in done.out


def test_the_yaml_is_written_where_asked_checked_and_not_over_another(capsys: Capture) -> None:
    done = llmsim(capsys, "import", SERVE, "-o", "mine.yaml")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"{WARNING}scenario in mine.yaml; try llmsim check mine.yaml\n"
    assert load_scenario("mine.yaml").name == "mine"
    assert llmsim(capsys, "check", "mine.yaml").code == 0
    again = llmsim(capsys, "import", SERVE, "-o", "mine.yaml")
    assert (again.code, again.out) == (2, "")
    assert again.err == "error: mine.yaml: exists already; choose another file, or --force to replace it\n"
    assert llmsim(capsys, "import", SERVE, "-o", "mine.yaml", "--force").code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "command: is empty"),
        ([""], "command: is empty"),
        (["ls -la"], "command: 'ls -la' is none of"),
        (["--", "vllm", "serve", "x", "--max-num-seqs"], "--max-num-seqs: needs a value"),
        (["vllm serve 'x"], "the quote ' is not closed"),
        (["vllm serve Qwen/Qwen3-8B --max-num-seqs 0", "-o", "x.yaml"], "--max-num-seqs 0: engine.max_num_seqs: 0"),
        (["--file", "none.sh"], "none.sh: cannot be read: No such file or directory"),
        (["--file", "."], ".: cannot be read: Is a directory"),
        ([SERVE, "--file", "x.sh"], "give a command or --file, not both"),
        ([SERVE, "-o", "none/x.yaml"], "none/x.yaml: cannot be made: No such file or directory"),
        (["vllm", "serve", "x", "--max-num-seqs", "3"], "No such option: --max-num-seqs"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    tmp_path: Path, capsys: Capture, arguments: list[str], says: str
) -> None:
    done = llmsim(capsys, "import", *arguments)
    assert (done.code, done.out) == (2, "")
    *warnings, last = done.err.splitlines()
    assert last.startswith("error: ")
    assert says in last
    assert all(line.startswith("warning: ") for line in warnings)
    assert os.listdir(tmp_path) == []
