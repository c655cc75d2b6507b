"""The house around the code: packaging, floors and the habits that tools do not check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from llmsim.tests.support.tree import ROOT, package_files, packages, project_files

MAX_LINES = 400
FLOORS_WITHOUT_TENSORS = ("policies", "sim", "calibrate", "scenarios", "cli")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def module_name(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.with_suffix("").parts
    return ".".join(("llmsim", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def test_pyproject_lists_every_folder_with_code() -> None:
    assert set(PYPROJECT["tool"]["setuptools"]["packages"]) ^ set(packages()) == set()


def test_every_folder_with_code_is_a_regular_package() -> None:
    folders = {path.parent for path in package_files(".py")}
    assert [str(folder) for folder in sorted(folders) if not (ROOT / folder / "__init__.py").exists()] == []


def test_every_folder_with_code_stands_on_a_floor() -> None:
    layers = PYPROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    on_a_floor = {name for layer in layers for name in re.findall(r"llmsim\.\w+", layer)}
    assert {".".join(name.split(".")[:2]) for name in packages() if name != "llmsim"} <= on_a_floor


def test_every_module_opens_with_one_plain_sentence() -> None:
    assert [str(path) for path in package_files(".py") if not opens_with_a_sentence(path)] == []


def opens_with_a_sentence(path: Path) -> bool:
    """Whether the docstring's first line is a sentence that stands alone."""
    docstring = ast.get_docstring(ast.parse((ROOT / path).read_text(encoding="utf-8")), clean=False) or ""
    first, *rest = docstring.split("\n")
    return first.endswith(".") and (not rest or not rest[0].strip())


def test_no_file_is_long() -> None:
    lengths = {str(path): len((ROOT / path).read_bytes().splitlines()) for path in project_files(".py")}
    assert {path: length for path, length in lengths.items() if length > MAX_LINES} == {}


def test_the_simulator_never_tries_to_import_torch() -> None:
    modules = [module_name(path) for path in package_files(".py")]
    simulator = [name for name in modules if name.startswith(tuple(f"llmsim.{f}" for f in FLOORS_WITHOUT_TENSORS))]
    program = f"""
import importlib, sys

tried = []

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton"):
            tried.append(name)

sys.meta_path.insert(0, Watch())
for name in {simulator}:
    importlib.import_module(name)
print(tried)
"""
    watched = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (watched.stdout, watched.returncode) == ("[]\n", 0), watched.stderr


LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("document", project_files(".md"), ids=str)
def test_relative_links_lead_somewhere(document: Path) -> None:
    links = LINK.findall((ROOT / document).read_text(encoding="utf-8"))
    targets = [link.partition("#")[0] for link in links if "://" not in link]
    assert [target for target in targets if not (ROOT / document.parent / target).exists()] == []
