"""`llmsim calibrate validate` and `fit-run`: what they print, and their answers to mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmsim.calibrate.comparison import STATISTICS
from llmsim.tests.support.command_line import llmsim
from llmsim.tests.support.measured_runs import ENGINE, measured_on, small_assembly, traffic, write_csv, write_recording
from llmsim.tests.support.shared import shared
from llmsim.tests.support.tree import ROOT

Capture = pytest.CaptureFixture[str]
HARDWARE = "hardware={gpu: h100-sxm, efficiencies: {host_step_s: 0, host_request_s: 0}}"
SETTINGS = ("--set", "model=llama-3.2-1b", "--set", f"engine={ENGINE}".replace("'", ""))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    slower = small_assembly(residual={"decode_s": 0.0004, "prefill_s": 0.0004, "mixed_s": 0.0004})
    return write_csv(measured_on(slower, traffic(60)), tmp_path / "run.csv")


def test_json_holds_every_statistic_of_every_latency(capsys: Capture, run: Path, tmp_path: Path) -> None:
    done = llmsim(
        capsys,
        "calibrate",
        "validate",
        "--run",
        run,
        *SETTINGS,
        "--set",
        HARDWARE,
        "--warmup",
        3,
        "--json",
        "-o",
        tmp_path / "p",
    )
    assert done.code == 0
    printed = done.json()
    assert set(printed["errors"]) == {"ttft_s", "tpot_s", "e2e_s", "queue_s", "scheduled_to_first_token_s"}
    for statistics in printed["errors"].values():
        assert set(statistics) == set(STATISTICS)
        assert all(set(one) == {"measured", "simulated", "error"} for one in statistics.values())
    assert printed["warmup"]["num_requests"] == 3
    assert printed["num_requests"] == 57
    assert (tmp_path / "p").read_bytes().startswith(b"\x89PNG")
    assert "prefix cache at the run's start is unknown" in done.err


def test_an_error_beyond_its_bound_exits_1(capsys: Capture, run: Path) -> None:
    wide = llmsim(
        capsys, "calibrate", "validate", "--run", run, *SETTINGS, "--set", HARDWARE, "--warmup", 0, "--within", 0.9
    )
    assert wide.code == 0
    narrow = llmsim(
        capsys,
        "calibrate",
        "validate",
        "--run",
        run,
        *SETTINGS,
        "--set",
        HARDWARE,
        "--warmup",
        0,
        "--within",
        "tpot=0.01",
    )
    assert narrow.code == 1
    assert "tpot mean is off by -" in narrow.err
    assert "ttft mean is off" not in narrow.err


def test_a_fitted_hardware_can_be_validated(capsys: Capture, run: Path, tmp_path: Path) -> None:
    fitted = tmp_path / "fitted.yaml"
    arguments = ("--run", run, *SETTINGS, "--set", HARDWARE, "--warmup", 0)
    done = llmsim(capsys, "calibrate", "fit-run", *arguments, "--fit", "residual", "--requests", "odd", "-o", fitted)
    assert done.code == 0
    assert "fitted: residual +0." in done.err
    scored = (
        "--run",
        run,
        *SETTINGS,
        "--warmup",
        0,
        "--scenario",
        fitted,
        "--within",
        "tpot=0.02",
        "--within",
        "e2e=0.03",
    )
    again = llmsim(capsys, "calibrate", "validate", *scored)
    assert again.code == 0
    refused = llmsim(capsys, "calibrate", "fit-run", *arguments, "--fit", "residual,kernel_gap_s")
    assert refused.code == 2
    assert refused.err.splitlines()[-1].startswith("error: the run cannot tell ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--run", "nothing"), "error: nothing: there is no such file or folder"),
        (("--run", "RUN", "--warmup", "soon"), "error: --warmup soon: write a number of requests"),
        (("--run", "RUN", "--within", "small"), "error: --within small: write a share"),
        (("--run", "RUN", "--fit-residual", "half"), "error: --fit-residual half: write first:150"),
        (("--run", "RUN", "--set", "model=tiny"), "the run does not say, or names one that is not known"),
        (("--run", "RUN", *SETTINGS, "--set", HARDWARE, "--scenario", "nothing.yaml"), "nothing.yaml"),
    ],
)
def test_a_mistake_is_one_line(capsys: Capture, run: Path, arguments: tuple[str, ...], says: str) -> None:
    done = llmsim(capsys, "calibrate", "validate", *[run if argument == "RUN" else argument for argument in arguments])
    assert done.code == 2
    assert says in done.err.splitlines()[-1]
    assert "Traceback" not in done.err


def test_a_request_count_that_differs_from_the_workloads_writes_nothing(capsys: Capture, tmp_path: Path) -> None:
    folder = write_recording(tmp_path / "run")
    (folder / "workload.jsonl").write_text((folder / "workload.jsonl").read_text().splitlines()[0] + "\n")
    done = llmsim(
        capsys, "calibrate", "validate", "--run", folder, *SETTINGS, "--set", HARDWARE, "-o", tmp_path / "p.png"
    )
    assert done.code == 2
    assert "line 2: request_id: bench-1 is no row of the workload" in done.err
    assert not (tmp_path / "p.png").exists()


MEASURED = {
    "rtx4090": ("vllm0.19-rtx4090-llama3.1-8b", "RTX4090-llama3.1-8b", ("--within", 0.03)),
    "rtxpro6000": (
        *("vllm0.19-rtxpro6000-llama3.1-8b", "RTXPRO6000-llama3.1-8b"),
        ("--within", "ttft=0.12", "--within", "ttft.p50=0.16", "--within", "tpot=0.05", "--within", "e2e=0.07"),
    ),
}


def profiled(capsys: Capture, folder: Path, machine: str) -> tuple[object, ...]:
    """The recorded run and the profile of its machine, as arguments."""
    run, bundle, _ = MEASURED[machine]
    recorded, timings = shared("measured", run), shared("profiles", bundle)
    assert llmsim(capsys, "calibrate", "import", timings, "-o", folder / "table").code == 0
    assert llmsim(capsys, "calibrate", "fit", folder / "table", "-o", folder / "profile").code == 0
    return "--run", recorded, "--profile", folder / "profile"


def documented(errors: Any) -> str:
    """A row of the document's table, without its first cell."""
    latencies = (errors[metric] for metric in ("ttft_s", "tpot_s", "e2e_s"))
    return " | ".join(" ".join(f"{100 * one[name]['error']:+.1f}" for name in STATISTICS) for one in latencies)


@pytest.mark.parametrize("machine", MEASURED)
def test_recorded_runs_are_met_by_their_kernels_alone(capsys: Capture, tmp_path: Path, machine: str) -> None:
    arguments = profiled(capsys, tmp_path, machine)
    done = llmsim(capsys, "calibrate", "validate", *arguments, "--json", *MEASURED[machine][2])
    assert done.code == 0, done.err
    assert documented(done.json()["errors"]) in (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
    if machine == "rtx4090":
        series, errors = done.json()["series"], done.json()["errors"]["scheduled_to_first_token_s"]
        most = {"running": 2, "waiting": 5, "kv_usage": 0.02}
        assert all(series[name]["correlation"] >= 0.98 for name in ("running", "waiting"))
        assert all(series[name]["mean_deviation"] <= bound for name, bound in most.items())
        assert all(abs(errors[point]["error"]) <= 0.1 for point in ("p50", "p90"))
        unqueued = done.json()["never_queued"]["errors"]["ttft_s"]
        assert all(abs(one["error"]) <= 0.1 for one in unqueued.values())
        assert done.json()["cold_start_s"] == pytest.approx([0.37], abs=0.02)


@pytest.mark.slow
def test_a_residual_of_half_of_the_requests_brings_the_other_half_near(capsys: Capture, tmp_path: Path) -> None:
    arguments = profiled(capsys, tmp_path, "rtxpro6000")
    fitted = ("--fit-residual", "first:150", "--within", 0.05)
    assert llmsim(capsys, "calibrate", "validate", *arguments, *fitted).code == 0
