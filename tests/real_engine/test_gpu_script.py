"""The GPU script runs dry on a CPU, from end to end, and its figures hold there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from llmsim.tests.benchmarks.gpu.checks import Check


@pytest.mark.slow
def test_the_gpu_script_runs_dry_on_a_cpu(tmp_path: Path) -> None:
    output = tmp_path / "figures.json"
    command = [sys.executable, "-m", "llmsim.tests.benchmarks.gpu", "-o", str(output), "--device", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(output.read_text())
    assert report["is_dry_run"]
    assert report["failures"] == {}
    assert {check["part"] for check in report["checks"]} == {
        *("kernel errors", "kernel ratios", "decode step", "greedy tokens", "short run")
    }
    assert "93 figures, 0 fell short, 0 parts failed" in done.stderr


def test_a_figure_that_falls_short_is_told() -> None:
    assert Check("part", "what", 0.7, must=0.75).has_passed is False
    assert Check("part", "what", 2.5, must=2.0, at_most=True).has_passed is False
    assert Check("part", "what", 1.5, must=2.0, at_most=True).has_passed is True
    assert Check("part", "what", 1.5).has_passed is None
