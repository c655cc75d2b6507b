"""Fits of made-up tables, and of the shared bundles of measured kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmsim.calibrate.fit import fit
from llmsim.calibrate.importers import import_timings
from llmsim.calibrate.importers.request import ImportRequest
from llmsim.calibrate.unequal import fit_unequal
from llmsim.policies.core import specs
from llmsim.policies.core.estimator import StepShape
from llmsim.sim.cost_model.attention_curve import AttentionCurve
from llmsim.sim.cost_model.curve_grid import Basis
from llmsim.sim.cost_model.profile import Profile
from llmsim.sim.cost_model.profiled import ProfiledCostModel
from llmsim.tests.support.profiles import FLOORS, fitted, table, timings
from llmsim.tests.support.shared import shared

BUNDLES = ("RTX4090-llama3.1-8b", "RTXPRO6000-llama3.1-8b", "RTXPRO6000-qwen3-30b-a3b", "RTXPRO6000-qwen3-32b")


@pytest.fixture(scope="module", params=BUNDLES)
def bundle(request) -> tuple[Profile, Profile]:
    """Table and profile of a shared bundle."""
    measured = import_timings(ImportRequest(str(shared("profiles", request.param))))
    return measured, fit(measured)


def test_held_out_points_are_predicted(bundle):
    _, profile = bundle
    assert profile.header.fit.held_out.median <= 0.05
    assert profile.header.fit.held_out.p95 <= 0.15
    mixed = profile.header.fit.kernels["attention"].held_out_mixed
    assert mixed.points > 1000
    assert mixed.median <= 0.05
    assert mixed.p95 <= 0.15


def test_measured_points_are_exact(bundle):
    measured, profile = bundle
    header = profile.header
    cost_model = ProfiledCostModel(profile, specs.model(header.model.name), header.tensor_parallel)
    for timing in measured.timings:
        if timing.kernel == "moe":
            assert profile.points("moe")[timing.shape] == timing.time_us
        elif timing.kernel != "attention":
            assert cost_model.kernel_us(timing.kernel, timing.shape[0]) == (timing.time_us, Basis.MEASURED)
        elif timing.shape[4] <= timing.shape[3]:
            q, kv, n, mean, _ = timing.shape
            assert cost_model.attention_us(q, kv, n, mean) == (timing.time_us, Basis.MEASURED)


def test_the_same_seed_fits_the_same_profile():
    assert fitted() == fitted()


def test_the_report_tells_the_grids_limits():
    report = fitted().header.fit
    assert report.kernels["qkv"].grid == {"tokens": (1, 1024)}
    assert report.kernels["attention"].grid["mean_context"] == (0, 8192)
    assert report.kernels["attention"].points == len([t for t in timings() if t.kernel == "attention"])


def test_a_table_is_fitted_whatever_the_order_of_its_rows():
    backwards = Profile(table().header, timings()[::-1], Path("made-up"))
    assert fit(backwards).header == fitted().header


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
def test_the_correction_for_unequal_contexts_is_found(alpha):
    points = {t.shape[:4]: t.time_us for t in timings() if t.kernel == "attention"}
    curve = AttentionCurve(points, FLOORS.attention_us)
    unequal = {}
    for n, mean in ((n, mean) for n in (2, 4, 8, 16, 32) for mean in (100, 200, 300, 400, 500)):
        short, long = (curve.at(0, 0, n, context)[0] for context in (mean, 4 * mean))
        unequal[0, 0, n, mean, 4 * mean] = short + alpha * (long - short)
    found, errors = fit_unequal(unequal, curve)
    assert found.decode_alpha == pytest.approx(alpha, abs=1e-4)
    assert not found.applied
    assert errors[1] == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("alpha", [0.0, 0.8])
def test_beside_a_prefill_the_correction_is_of_one_decode(alpha):
    points = {t.shape[:4]: t.time_us for t in timings() if t.kernel == "attention"}
    curve = AttentionCurve(points, FLOORS.attention_us)
    unequal = {}
    for q, n, mean in ((q, n, mean) for q in (16, 64) for n in (2, 8, 32) for mean in (100, 200, 300, 400, 500)):
        short, long = (curve.at(q, 64, 1, context)[0] for context in (mean, 8 * mean))
        unequal[q, 64, n, mean, 8 * mean] = curve.at(q, 64, n, mean)[0] + alpha * (long - short)
    found, errors = fit_unequal(unequal, curve)
    assert found.mixed_alpha == pytest.approx(alpha, abs=1e-3)
    assert errors[1] == pytest.approx(0, abs=1e-3)


def test_the_correction_halves_the_error_of_unequal_contexts(bundle):
    without, corrected = bundle[1].header.fit.unequal_contexts_error
    assert corrected < 0.6 * without
    assert 0.7 < bundle[1].header.unequal_contexts.mixed_alpha < 1


def test_experts_cost_what_so_many_tokens_need_of_them():
    profile = fit(import_timings(ImportRequest(str(shared("profiles", "RTXPRO6000-qwen3-30b-a3b")))))
    cost_model = ProfiledCostModel(profile, specs.model("qwen3-30b-a3b"))
    points = profile.points("moe")
    assert cost_model.kernel_us("moe", 1) == (points[1, 8], Basis.INTERPOLATED)
    assert points[2, 8] < cost_model.kernel_us("moe", 2)[0] < points[2, 16]  # 15.5 of them
    assert cost_model.kernel_us("moe", 2048)[0] == pytest.approx(points[2048, 128], rel=1e-3)
    step = cost_model.step_cost(StepShape((), 8, 8000, 1000, 8, 0))
    assert step.device_ns > 48 * 1e3 * points[8, 32]
    assert not step.extrapolated
