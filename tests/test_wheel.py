"""A wheel built from the committed files holds the whole package and nothing else."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from llmsim.tests.support.tree import ROOT, package_files

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed files, unpacked: no stale `build/`, no file that git does not know."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True)
    if archive.returncode != 0:
        pytest.skip("git archive needs a git checkout")
    folder = tmp_path_factory.mktemp("committed")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def wheel(committed: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of the files in the wheel that is built from them."""
    dist = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(dist),
        str(committed),
    ]
    built = subprocess.run(command, cwd=dist, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = dist.iterdir()
    return zipfile.ZipFile(path).namelist()


def differences(wheel: list[str], committed: Path, suffix: str) -> set[str]:
    """The files of this suffix that the wheel lacks, or holds without being part of the package."""
    expected = {f"llmsim/{path.as_posix()}" for path in package_files(suffix, committed)}
    return expected ^ {name for name in wheel if name.endswith(suffix)}


def test_wheel_holds_every_module_and_no_tests(wheel: list[str], committed: Path) -> None:
    assert differences(wheel, committed, ".py") == set()


def test_wheel_holds_all_yaml_data(wheel: list[str], committed: Path) -> None:
    assert differences(wheel, committed, ".yaml") == set()


def test_wheel_says_that_it_is_typed_and_how_it_is_licensed(wheel: list[str]) -> None:
    assert "llmsim/py.typed" in wheel
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel)
