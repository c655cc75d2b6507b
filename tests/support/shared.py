"""Finds the shared data: traces, profiles and measurements that lie beside the repository, not in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def shared(*parts: str) -> Path:
    """The path of a shared file or folder, under `$LLMSIM_SHARED`, by default `../shared`.

    Skips the running test, or the module being imported, where it is not there.
    """
    path = Path(os.environ.get("LLMSIM_SHARED") or ROOT.parent / "shared").joinpath(*parts)
    if not path.exists():
        pytest.skip(f"shared data are absent: {path} (set LLMSIM_SHARED)", allow_module_level=True)
    return path
