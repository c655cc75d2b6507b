from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from llmsim.calibrate.least_squares import CannotTell
from llmsim.calibrate.runs.measured_run import RunSetup
from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.studies.fit_run import fit_run, of_engine, parameter_names, write_hardware
from llmsim.scenarios.studies.measured_scenario import known_gpu, scenario_of
from llmsim.scenarios.studies.run_parts import Part, Warmup
from llmsim.tests.support.measured_runs import NO_HOST, measured_on, small_assembly, traffic

NO_WARMUP = Warmup(0, 0.0)


def test_a_fit_finds_the_residuals_of_the_engine_that_was_measured(tmp_path: Path) -> None:
    residual = {"decode_s": 0.0004, "prefill_s": 0.001, "mixed_s": 0.001}
    run = measured_on(small_assembly(residual=residual), traffic(80))
    names = ("decode_residual", "prefill_residual")
    found = fit_run([(run, small_assembly())], [], names, Part("odd"), NO_WARMUP, print)
    assert found.found.values == pytest.approx({"decode_residual": 0.0004, "prefill_residual": 0.001}, rel=0.1)
    assert [tried.what for tried in found.unseen] == ["the others of small"]
    mean = found.unseen[0].errors["tpot_s"]["mean"]["error"]
    assert mean is not None
    assert abs(mean) < 0.03
    write_hardware(found, tmp_path / "fitted.yaml", force=False)
    again = assemble(scenario_of(run, tmp_path / "fitted.yaml"))
    assert again.scenario.hardware.residual is not None
    assert again.scenario.hardware.residual.decode_s == found.found.values["decode_residual"]
    assert yaml.safe_load((tmp_path / "fitted.yaml").read_text())["hardware"]["gpu"] == "h100-sxm"
    with pytest.raises(ScenarioError, match="is there already; --force replaces it"):
        write_hardware(found, tmp_path / "fitted.yaml", force=False)


def test_on_another_gpu_only_what_the_host_takes_is_carried_over() -> None:
    run, told = measured_on(small_assembly(residual={"decode_s": 0.001}), traffic(60)), []
    other = small_assembly(gpu="a100-80g")
    fitted = fit_run([(run, small_assembly())], [(run, other)], ("decode_residual",), None, NO_WARMUP, told.append)
    assert "is of a100-80g, the fit of h100-sxm: carried over is what the host takes (nothing)" in told[-1]
    assert fitted.unseen[0].errors == fitted.unseen[0].before


def test_what_was_fitted_at_two_rates_holds_at_a_third() -> None:
    real = small_assembly(efficiencies={**NO_HOST, "weights": 0.6})
    runs = [measured_on(real, traffic(40, rate, seed=seed)) for seed, rate in enumerate((50.0, 100.0, 200.0))]
    assembly = small_assembly()
    seen, unseen = [(run, assembly) for run in runs[:2]], [(runs[2], assembly)]
    fitted = fit_run(seen, unseen, ("weights",), None, NO_WARMUP, print)
    assert fitted.found.values["weights"] == pytest.approx(0.6, abs=0.01)
    assert fitted.hardware["efficiencies"]["host_step_s"] == 0
    mean = fitted.unseen[0].errors["tpot_s"]["mean"]["error"]
    assert mean is not None
    assert abs(mean) < 0.02


def test_runs_of_two_gpus_are_not_fitted_together() -> None:
    run = traffic(10)
    trials = [(run, small_assembly()), (run, small_assembly(gpu="a100-80g"))]
    with pytest.raises(ScenarioError, match="small: is of a100-80g, small of h100-sxm: a fit is of one GPU"):
        fit_run(trials, [], ("residual",), None, NO_WARMUP, print)


def test_what_a_run_cannot_tell_is_refused_with_the_reason() -> None:
    run = measured_on(small_assembly(), traffic(60))
    with pytest.raises(CannotTell, match=r"cannot tell (residual and kernel_gap_s|kernel_gap_s and residual)"):
        fit_run([(run, small_assembly())], [], ("residual", "kernel_gap_s"), None, NO_WARMUP, print)
    with pytest.raises(CannotTell, match="cannot tell fp8"):
        fit_run([(run, small_assembly())], [], ("fp8",), None, NO_WARMUP, print)


def test_a_part_that_lies_in_the_warmup_is_refused() -> None:
    run = measured_on(small_assembly(), traffic(10))
    with pytest.raises(ScenarioError, match="none of the requests to be fitted on comes after the warm-up"):
        fit_run([(run, small_assembly())], [], ("residual",), Part("first:3"), Warmup(5, 0.0), print)


def test_parameters_are_known_by_name() -> None:
    assert parameter_names(None, small_assembly()) == ("weights", "bf16")
    assert parameter_names("kv, residual,kv", small_assembly()) == ("kv", "residual")
    with pytest.raises(ScenarioError, match="'weight' is unknown; did you mean 'weights'"):
        parameter_names("weight", small_assembly())


def test_overrides_of_the_hardware_hold_for_the_fitted_runs_alone() -> None:
    assert of_engine(["hardware.gpu=h100-sxm", "engine.max_num_seqs=8"]) == ["engine.max_num_seqs=8"]


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"),
        ("RTXPRO6000", "rtx-pro-6000"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA L4", "l4"),
        ("AMD Instinct MI300X", "mi300x"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA L40", None),
        ("NVIDIA GeForce RTX 4090 D", None),
    ],
)
def test_a_gpu_is_known_by_what_its_driver_calls_it(told: str, known: str | None) -> None:
    assert known_gpu(told) == known


def test_what_is_set_comes_before_the_yaml_and_that_before_the_run(tmp_path: Path) -> None:
    path = tmp_path / "more.yaml"
    path.write_text("model: tiny\nhardware: {gpu: a100-80g}\nengine: {max_num_seqs: 16, block_size: 32}\n")
    scenario = scenario_of(traffic(), path, ["engine.block_size=8"])
    assert (scenario.hardware.gpu, scenario.engine.max_num_seqs) == ("a100-80g", 16)  # type: ignore[union-attr]
    assert scenario.engine.block_size == 8  # type: ignore[union-attr]
    assert scenario.engine.num_gpu_blocks_override == 400  # type: ignore[union-attr]


def test_what_the_run_leaves_open_must_be_told() -> None:
    run = replace(traffic(), setup=RunSetup("vllm", "meta-llama/Llama-3.2-1B", "NVIDIA L40"))
    with pytest.raises(ScenarioError, match=r"hardware.gpu: .*\(NVIDIA L40\): give --set hardware.gpu"):
        scenario_of(run)
    assert scenario_of(run, overrides=["hardware.gpu=h100-sxm"]).model == "llama-3.2-1b"
