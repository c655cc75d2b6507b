"""Shared data are found where the environment says, and their absence skips."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmsim.tests.support.shared import shared


def test_shared_path_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "traces").mkdir()
    monkeypatch.setenv("LLMSIM_SHARED", str(tmp_path))
    assert shared("traces") == tmp_path / "traces"


def test_absent_shared_data_skip_with_the_path_as_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMSIM_SHARED", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match="nowhere"):
        shared("nowhere")
