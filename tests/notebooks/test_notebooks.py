"""Notebooks run as they are, import little, and are committed without outputs."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from llmsim.tests.support.tree import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
IMPORTS = {"llmsim", "pandas", "matplotlib", "pathlib"}


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def executed(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that a notebook leaves; cells are plain Python, so no kernel is needed."""
    monkeypatch.chdir(path.parent)
    names: dict[str, Any] = {"__name__": "__main__"}
    with mpl.rc_context():
        mpl.use("agg")
        for number, cell in enumerate(code_cells(path)):
            exec(compile("".join(cell["source"]), f"{path.name}, code cell {number}", "exec"), names)
    return names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stripped(path: Path) -> None:
    cells = code_cells(path)
    assert cells
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_is_imported_but_the_package_and_tools_for_tables_and_pictures(path: Path) -> None:
    trees = [ast.parse("".join(cell["source"])) for cell in code_cells(path)]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in names} <= IMPORTS
    assert "llmsim" in names


def test_every_notebook_is_executed_by_a_test_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [path.name for path in NOTEBOOKS if f'"{path.name}"' not in text] == []


@pytest.mark.slow
def test_chunk_sizes_trade_itl_for_ttft(monkeypatch: pytest.MonkeyPatch) -> None:
    names = executed(ROOT / "notebooks" / "itl_vs_chunk_size.ipynb", monkeypatch)
    means = names["frame"].groupby(names["CHUNK"])[["itl_s.p99", "itl_s.max", "ttft_s.p99", "goodput_rps", "overloaded"]].mean()
    assert means.index.tolist() == [256, 512, 1024, 2048, 4096, 8192]
    assert not means["overloaded"].any()
    smallest, largest = means.iloc[0], means.iloc[-1]
    assert means["itl_s.max"].is_monotonic_increasing
    assert means["itl_s.p99"].loc[:2048].is_monotonic_increasing
    assert means["itl_s.p99"].idxmax() == 2048
    assert smallest["ttft_s.p99"] > 1.5 * largest["ttft_s.p99"]
    assert means["goodput_rps"].max() > 1.1 * largest["goodput_rps"]
    axes = names["figure"].axes
    assert len(axes) == 3
    assert all(one.get_title() and one.get_xlabel() == "chunk size, tokens" for one in axes)
    assert [one.get_ylabel() for one in axes] == ["ITL, ms", "TTFT, s", "requests/s"]
    mpl.pyplot.close(names["figure"])
