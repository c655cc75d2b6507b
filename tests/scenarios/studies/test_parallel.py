"""Functions carried out by other processes, which are kept for the next study."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from joblib.externals.loky import get_reusable_executor

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.studies.parallel import in_parallel
from llmsim.tests.support.parallel_work import die, where


@pytest.fixture(autouse=True)
def new_processes() -> Iterator[None]:
    """None that tests before have left, in whatever state; and none is left to those after."""
    get_reusable_executor().shutdown(wait=True, kill_workers=True)
    yield
    get_reusable_executor().shutdown(wait=True, kill_workers=True)


def test_processes_work_where_the_caller_is_though_they_began_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert set(in_parallel(where, range(4), jobs=2)) == {str(tmp_path / name)}


def test_a_process_that_is_killed_is_one_line() -> None:
    with pytest.raises(ScenarioError, match="a process of the study was killed, for want of memory perhaps"):
        list(in_parallel(die, range(2), jobs=2))
