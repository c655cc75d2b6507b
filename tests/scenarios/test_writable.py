"""Whether output can be written is found out before the work, and finding out leaves everything as it was."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.writable import check_file, check_folder
from llmsim.tests.support.command_line import contents

TOO_LONG = r": cannot be made: File name too long$"


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A folder with a file and a folder in it."""
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    return tmp_path


def state(folder: Path) -> tuple[dict[str, bytes], list[str], int]:
    return contents(folder), sorted(os.listdir(folder)), (folder / "file").stat().st_mtime_ns


@pytest.mark.parametrize("name", ["new", "file"])
def test_a_file_that_can_be_written_is_neither_made_nor_touched(full: Path, name: str) -> None:
    before = state(full)
    check_file(full / name)
    assert state(full) == before


@pytest.mark.parametrize("name", ["new", "a/b/new", "folder/new"])
def test_folders_that_would_be_made_are_not_left_behind(full: Path, name: str) -> None:
    before = state(full)
    check_folder(full / name)
    check_file(full / name, makes_parents=True)
    assert state(full) == before
    assert not os.listdir(full / "folder")


@pytest.mark.skipif(os.name == "nt", reason="names are longer there")
def test_a_file_has_all_of_the_longest_name(full: Path) -> None:
    before, path = state(full), full / ("x" * 255)
    check_file(path)
    path.write_text("written", encoding="utf-8")
    path.unlink()
    for longer in (full / ("x" * 256), full / "new" / ("x" * 256)):
        with pytest.raises(ScenarioError, match=TOO_LONG):
            check_file(longer, makes_parents=True)
    assert state(full) == before


@pytest.mark.skipif(os.name == "nt", reason="names are longer there")
@pytest.mark.parametrize("name", ["x" * 238, "new/" + "x" * 238, "x" * 256 + "/new", "new/" + "x" * 256 + "/new"])
def test_a_folder_needs_room_for_the_name_under_which_it_is_written(full: Path, name: str) -> None:
    before = state(full)
    with pytest.raises(ScenarioError, match=TOO_LONG):
        check_folder(full / name)
    assert state(full) == before
    check_folder(full / name.replace("x" * 256, "x" * 255).replace("x" * 238, "x" * 237))


def test_no_folder_above_is_made_which_a_parallel_command_could_take_for_there(
    full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, made, path = os.mkdir, list[Path](), full / "a" / "b" / "new"

    def watched(folder: Path, *mode: int) -> None:
        made.append(Path(folder))
        make(folder, *mode)

    monkeypatch.setattr(os, "mkdir", watched)
    check_folder(path)
    check_file(path, makes_parents=True)
    assert made
    assert not set(made) & set(path.parents)


@pytest.mark.skipif(os.name == "nt", reason="makes a pipe")
def test_a_pipe_is_not_opened_which_would_wait_for_a_reader(full: Path) -> None:
    os.mkfifo(full / "pipe")
    check_file(full / "pipe")


@pytest.mark.parametrize(
    ("name", "says"),
    [("a/new", "No such file or directory"), ("folder", "Is a directory"), ("file/new", "Not a directory")],
)
def test_a_file_that_cannot_be_written_is_told_in_one_line(full: Path, name: str, says: str) -> None:
    before = state(full)
    with pytest.raises(ScenarioError) as refused:
        check_file(full / name)
    assert str(refused.value) == f"{full / name}: cannot be made: {says}"
    assert state(full) == before


@pytest.mark.parametrize("name", ["file/new", "file/a/new"])
def test_a_folder_in_a_file_cannot_be_made(full: Path, name: str) -> None:
    before = state(full)
    for check in (check_folder, lambda path: check_file(path, makes_parents=True)):
        with pytest.raises(ScenarioError, match=r"cannot be made: (Not a directory|File exists)$"):
            check(full / name)
    assert state(full) == before


@pytest.mark.parametrize("name", [".", "..", "/"])
def test_what_has_no_name_is_no_new_folder(name: str) -> None:
    with pytest.raises(ScenarioError, match="names no folder that could be made or replaced"):
        check_folder(Path(name))


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is forbidden to root")
@pytest.mark.parametrize("check", [check_file, check_folder])
def test_a_folder_that_may_not_be_written_in_is_told(full: Path, check: Callable[[Path], None]) -> None:
    (full / "folder").chmod(0o500)
    with pytest.raises(ScenarioError, match="cannot be made: Permission denied"):
        check(full / "folder" / "new")
