"""The measured kernels in aiconfigurator-core; skipped where the package is not installed."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from llmsim.calibrate.fit import fit
from llmsim.calibrate.importers import import_timings
from llmsim.calibrate.importers.request import ImportRequest
from llmsim.calibrate.importers.size_interpolation import between, gemm_between
from llmsim.policies.core import specs
from llmsim.policies.core.estimator import StepShape
from llmsim.sim.cost_model.profiled import ProfiledCostModel
from llmsim.sim.cost_model.timings import ProfileError

INSTALLED = find_spec("aiconfigurator_core") is not None
needs_package = pytest.mark.skipif(not INSTALLED, reason="aiconfigurator-core is not installed")


@needs_package
@pytest.mark.parametrize("system", ["h100_sxm", "h200_sxm", "a100_sxm", "l40s"])
def test_a_models_kernels_are_found_for_each_system(system):
    table = import_timings(ImportRequest(f"aiconfigurator:{system}", "qwen3-32b", None, 2))
    kernels = {timing.kernel for timing in table.timings}
    assert kernels == {"qkv", "o", "gate_up", "down", "lm_head", "attention", "all_reduce"}
    assert fit(table).header.fit.held_out.median <= 0.07


@needs_package
@pytest.mark.parametrize("system", ["h100_sxm", "h200_sxm"])
def test_held_out_points_of_an_8b_model_are_predicted(system):
    held_out = fit(import_timings(ImportRequest(f"aiconfigurator:{system}", "llama-3.1-8b"))).header.fit.held_out
    assert held_out.median <= 0.05
    assert held_out.p95 <= 0.15


@needs_package
@pytest.mark.parametrize("context", [256, 1024, 4096, 16_384, 32_768, 65_536])
def test_the_decode_line_of_an_h100_is_within_ten_per_cent(context):
    profile = fit(import_timings(ImportRequest("aiconfigurator:h100_sxm", "llama-3.1-8b")))
    cost = ProfiledCostModel(profile, specs.model("llama-3.1-8b")).step_cost(StepShape((), 1, context, context, 1, 0))
    assert cost.device_ns / 1e6 == pytest.approx(6.44 + 4.37e-5 * context, rel=0.10)


@needs_package
@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("aiconfigurator:voodoo2", "system 'voodoo2' is unknown; choose a100_pcie, a100_sxm"),
        ("aiconfigurator:h100_sxm/vllm/0.1", "has no gemm_perf of vllm 0.1; its gemm is of sglang, trtllm, vllm"),
        ("aiconfigurator:h100_sxm/a/b/c", "is to be aiconfigurator:SYSTEM[/BACKEND[/VERSION]]"),
    ],
)
def test_what_the_package_does_not_have_is_told(source, says):
    with pytest.raises(ProfileError) as refused:
        import_timings(ImportRequest(source, "llama-3.1-8b"))
    assert says in str(refused.value)


@pytest.mark.skipif(INSTALLED, reason="aiconfigurator-core is installed")
def test_without_the_package_its_extra_is_named():
    with pytest.raises(ProfileError, match=r"is not installed; pip install 'llmsim\[aiconfigurator\]'"):
        import_timings(ImportRequest("aiconfigurator:h100_sxm", "llama-3.1-8b"))


def test_a_size_between_two_is_linear_and_not_exact():
    assert between({2: 10.0, 4: 20.0}, 2) == (10.0, True)
    assert between({2: 10.0, 4: 20.0}, 3) == (15.0, False)
    assert between({2: 10.0, 4: 20.0}, 9) == (20.0, False)


def test_a_gemm_between_four_takes_their_time_a_weight():
    gemms = {(n, k): {1: 3.0 * n * k, 8: 4.0 * n * k} for n in (16, 64) for k in (32, 128)}
    assert gemm_between(gemms, 16, 32) == {1: (3.0 * 512, True), 8: (4.0 * 512, True)}
    assert gemm_between(gemms, 40, 100) == {
        1: (pytest.approx(3.0 * 4000), False),
        8: (pytest.approx(4.0 * 4000), False),
    }
    del gemms[64, 128]
    assert gemm_between(gemms, 40, 100)[1] == (pytest.approx(3.0 * 4000), False)
    assert gemm_between(gemms, 256, 32)[1] == (pytest.approx(3.0 * 256 * 32), False)
