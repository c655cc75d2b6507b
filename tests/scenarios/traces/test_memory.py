"""A trace ten times as long takes the same memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmsim.tests.support.command_line import finish, start


def play(form: str, megabytes: int, folder: Path) -> dict[str, Any]:
    arguments = ("--format", form, "--megabytes", megabytes)
    done = finish(start(*arguments, cwd=folder, module="llmsim.tests.benchmarks.trace_memory"))
    assert done.code == 0, done.err
    report: dict[str, Any] = done.json()
    return report


@pytest.mark.parametrize("form", ["hash_ids", "sharegpt"])
def test_sixty_megabytes_take_what_six_take(tmp_path: Path, form: str) -> None:
    """Held, they would take ten times what the parsed objects of six take: hundreds of megabytes."""
    small, large = (play(form, megabytes, tmp_path) for megabytes in (6, 60))
    assert large["num_requests"] > 8 * small["num_requests"]
    assert large["peak_megabytes"] < small["peak_megabytes"] + 10
