"""A policy need not be the house's: it may stand in a file, in a module, or come with another distribution."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from llmsim.policies import finding, registry
from llmsim.policies.finding import source_digest
from llmsim.policies.registry import PolicyError, create, find
from llmsim.scenarios.policy_listing import listed

MINE = '''
from llmsim.policies.registry import register


@register("scheduling", "fcfs")
class Mine:
    """Last in, first out."""

    def __init__(self, depth: int = 3) -> None:
        self.depth = depth

    def insert(self, queue, sequence):
        queue.append_left(sequence)

    def reorder(self, queue, view):
        pass


class Half:
    def insert(self, queue, sequence):
        pass


class Short(Mine):
    def reorder(self, queue):
        pass


class Wishful(Mine):
    requires = ("magic",)


class Wordy(Mine):
    requires = "deadline"


class Moody(Mine):
    def __init__(self):
        {}["key"]


number = 3
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def refusal(kind: str, spec: dict[str, Any], folder: Path) -> tuple[str, str]:
    with pytest.raises(PolicyError) as caught:
        create(kind, spec, (folder,))
    return caught.value.key, str(caught.value)


def test_a_class_of_a_file_is_a_policy_with_its_parameters(folder: Path) -> None:
    policy = create("scheduling", {"name": "./mine.py:Mine", "depth": 7}, (folder,))
    assert (type(policy).__name__, policy.depth) == ("Mine", 7)
    assert create("scheduling", {"name": f"{folder}/mine.py:Mine"}).depth == 3


def test_a_file_is_looked_for_in_one_folder_after_the_other(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = find("scheduling", "./mine.py:Mine", (tmp_path / "empty", folder))
    assert found is find("scheduling", "mine.py:Mine", (folder,))


def test_a_file_that_changed_is_read_again_and_leaves_nothing_behind(folder: Path) -> None:
    before = find("scheduling", "./mine.py:Mine", (folder,))
    (folder / "mine.py").write_text(MINE.replace("= 3", "= 4", 1))
    after = find("scheduling", "./mine.py:Mine", (folder,))
    assert (before().depth, after().depth) == (3, 4)
    assert source_digest(before) == source_digest(after) != source_digest(find("eviction", "lru"))
    assert [path.name for path in folder.iterdir()] == ["mine.py"]


def test_a_registered_name_in_a_file_takes_nobodys_place(folder: Path) -> None:
    mine = find("scheduling", "./mine.py:Mine", (folder,))
    assert find("scheduling", "fcfs") is not mine


def test_a_class_of_a_module_is_a_policy() -> None:
    found = find("scheduling", "llmsim.policies.scheduling.fcfs:Fcfs")
    assert found is find("scheduling", "fcfs")


@pytest.mark.parametrize(
    ("spec", "key", "says"),
    [
        ({"name": "./mine.py:None"}, "name", "./mine.py has no class 'None'; it has Mine, Half, Short, "),
        ({"name": "./mine.py:number"}, "name", "./mine.py has no class 'number'; it has "),
        ({"name": "./yours.py:Mine"}, "name", "there is no file "),
        ({"name": "nowhere.at_all:Mine"}, "name", "there is no module 'nowhere'; a file's name ends in .py"),
        ({"name": "./mine.py:Half"}, "name", "Half lacks reorder(queue, view), which a policy of kind scheduling has"),
        ({"name": "./mine.py:Short"}, "name", "Short.reorder must take (queue, view)"),
        ({"name": "./mine.py:Wishful"}, "name", "Wishful requires 'magic', which is unknown; choose prefix_index, "),
        ({"name": "./mine.py:Wordy"}, "name", "Wordy.requires must be a tuple of words, not 'deadline'"),
        ({"name": "./mine.py:Moody"}, "name", "./mine.py:Moody cannot be made: KeyError: 'key' (mine.py, line "),
        ({"name": "./mine.py:Mine", "dept": 3}, "dept", "./mine.py:Mine has no such parameter; it takes depth"),
        ({"name": "./mine.py:Mine", "depth": "3"}, "depth", "'3' is not of type int"),
        ({"name": "llmsim.policies.eviction.lru:Lru"}, "name", "Lru lacks insert(queue, sequence), which "),
    ],
)
def test_what_is_wrong_with_a_class_is_told_in_one_line(
    folder: Path, spec: dict[str, Any], key: str, says: str
) -> None:
    got = refusal("scheduling", spec, folder)
    assert got[0] == key
    assert got[1].startswith(says)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def f(:\n", "./bad.py cannot be loaded: SyntaxError: invalid syntax (line 1)"),
        ("\n\n1 / 0\n", "./bad.py cannot be loaded: ZeroDivisionError: division by zero (bad.py, line 3)"),
        ("import sys\nsys.exit(3)\n", "./bad.py cannot be loaded: SystemExit: 3 (bad.py, line 2)"),
        (
            "import nowhere\n",
            "./bad.py cannot be loaded: ModuleNotFoundError: No module named 'nowhere' (bad.py, line 1)",
        ),
    ],
)
def test_a_file_that_does_not_load_is_named_with_the_line(tmp_path: Path, source: str, says: str) -> None:
    (tmp_path / "bad.py").write_text(source)
    assert refusal("scheduling", {"name": "./bad.py:Mine"}, tmp_path) == ("name", says)
    assert not [
        name for name in sys.modules if name.startswith(finding.FILE_MODULES) and "bad" in str(sys.modules[name])
    ]


class _Distribution:
    """What an entry point knows of where it comes from."""

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.fixture
def _plug_ins(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Distributions with good, broken and misnamed policies."""
    monkeypatch.syspath_prepend(str(folder))
    (folder / "broken_plug_in.py").write_text("import nowhere\n")
    (folder / "good_plug_in.py").write_text(MINE.replace('@register("scheduling", "fcfs")\n', ""))

    def entry(name: str, value: str, distribution: str) -> EntryPoint:
        point = EntryPoint(name, value, finding.GROUP)
        vars(point)["dist"] = _Distribution(distribution)
        return point

    points = [
        entry("scheduling.lifo", "good_plug_in:Mine", "good"),
        entry("scheduling.half", "good_plug_in:Half", "good"),
        entry("scheduling.broken", "broken_plug_in:Mine", "bad"),
        entry("scheduling.number", "good_plug_in:number", "bad"),
        entry("lifo", "good_plug_in:Mine", "bad"),
        entry("scheduling.twice", "good_plug_in:Mine", "good"),
        entry("scheduling.twice", "good_plug_in:Mine", "bad"),
    ]
    monkeypatch.setattr(finding, "entry_points", lambda group: points if group == finding.GROUP else [])


@pytest.mark.usefixtures("_plug_ins")
def test_another_distribution_registers_a_policy_by_name() -> None:
    assert create("scheduling", {"name": "lifo", "depth": 2}).depth == 2


@pytest.mark.usefixtures("_plug_ins")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("broken", "broken_plug_in:Mine of bad cannot be loaded: ModuleNotFoundError: No module named 'nowhere' ("),
        ("half", "Half lacks reorder(queue, view)"),
        ("number", "good_plug_in:number of bad is no class"),
        ("twice", "'twice' is registered by bad and by good"),
        ("lif", "'lif' is unknown; choose broken, "),
    ],
)
def test_a_broken_plug_in_is_named_when_it_is_asked_for(tmp_path: Path, name: str, says: str) -> None:
    key, message = refusal("scheduling", {"name": name}, tmp_path)
    assert key == "name"
    assert message.startswith(says)


@pytest.mark.usefixtures("_plug_ins")
def test_plug_ins_are_listed_and_what_is_wrong_with_one_does_not_hide_the_others() -> None:
    known, wrong = listed()
    assert ("scheduling", "lifo") in {(item.kind, item.name) for item in known}
    assert {item.name for item in known} >= {"fcfs", "lru", "unified"}
    assert sorted(line.partition(": ")[0] for line in wrong) == ["bad"] * 4 + ["good"] * 2
    for says in (
        "'lifo' must be KIND.NAME",
        "bad: scheduling.broken: ",
        "good: scheduling.half: ",
        "registered by bad",
    ):
        assert any(says in line for line in wrong), says


def test_the_houses_own_are_not_looked_up_among_plug_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "entry_points", None)
    assert create("chunk_size", {"name": "fixed", "tokens": 3}).tokens == 3
    assert registry.find("eviction", "lru")
