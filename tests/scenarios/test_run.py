"""A run's summary follows from its tables, recomputed here with pandas; the same run gives the same bytes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.run import run_into
from llmsim.tests.support.command_line import contents, finish, start
from llmsim.tests.support.scenario_files import BUSY, write_scenario

PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}


class Result:
    """A result folder, read again."""

    def __init__(self, folder: Path, summary: dict[str, Any]) -> None:
        self.folder = folder
        self.summary = summary
        self.requests = pd.read_parquet(folder / "requests.parquet")
        self.steps = pd.read_parquet(folder / "steps.parquet")
        self.events = pd.read_parquet(folder / "events.parquet")
        self.gaps = pd.read_parquet(folder / "itl.parquet")


def run_busy(folder: Path, *overrides: str, journal: bool = False) -> Result:
    """The busy scenario, and what it left."""
    folder.mkdir(exist_ok=True)
    assembly = assemble(load_scenario(write_scenario(folder, BUSY), overrides))
    return Result(folder / "out", run_into(assembly, folder / "out", journal=journal, warn=print))


@pytest.fixture(scope="module", params=["true", "false"], ids=["depth 2", "depth 1"])
def busy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run_busy(tmp_path_factory.mktemp("busy"), f"engine.async_scheduling={request.param}")


def assert_distribution(got: dict[str, float], values: pd.Series) -> None:
    """`got` is mean, percentiles (numpy's, linear) and maximum of the values."""
    want = {"mean": values.mean(), "max": values.max()}
    want |= {name: np.percentile(values, percentage) for name, percentage in PERCENTILES.items()}
    assert got == pytest.approx(want, rel=1e-9, abs=1e-12)


def test_the_busy_run_holds_everything_that_can_go_wrong(busy: Result) -> None:
    requests = busy.requests
    assert (requests.num_preemptions > 1).any()
    assert (requests.num_chunks > 2).any()
    assert (requests.cached_tokens > 0).any()
    assert (requests.cached_tokens == 0).any()
    assert {"memory", "order", "chunk", "arrival"} <= set(requests.blocked_by)
    assert {"preempt", "evict"} == set(busy.events.kind)


def test_latencies_are_those_of_the_requests(busy: Result) -> None:
    r, summary = busy.requests, busy.summary
    ttft, e2e = r.first_token_s - r.sent_s, r.last_token_s - r.sent_s
    assert_distribution(summary["ttft_s"], ttft)
    assert_distribution(summary["e2e_s"], e2e)
    assert_distribution(summary["queue_s"], r.first_scheduled_s - r.sent_s)
    several = r.output_tokens > 1
    tpot = ((e2e - ttft) / (r.output_tokens - 1))[several]
    assert several.sum() > 300
    assert_distribution(summary["tpot_s"], tpot)
    assert_distribution(summary["itl_request_mean_s"], tpot)


def test_gaps_between_tokens_are_all_there(busy: Result) -> None:
    r, gaps = busy.requests, busy.gaps
    assert gaps.num_tokens.sum() == (r.output_tokens - 1).sum()
    total_s = (r.last_token_s - r.first_token_s).sum()
    assert (gaps.gap_s * gaps.num_tokens).sum() == pytest.approx(total_s, rel=1e-9)
    assert_distribution(busy.summary["itl_s"], gaps.gap_s.repeat(gaps.num_tokens))


def test_rates_divide_by_the_whole_duration(busy: Result) -> None:
    r, summary = busy.requests, busy.summary
    duration_s = r.last_token_s.max()
    assert summary["duration_s"] == pytest.approx(duration_s)
    assert summary["requests_per_s"] == pytest.approx(len(r) / duration_s)
    assert summary["output_tokens_per_s"] == pytest.approx(r.output_tokens.sum() / duration_s)
    assert summary["total_tokens_per_s"] == pytest.approx((r.output_tokens + r.prompt_tokens).sum() / duration_s)


def test_goodput_counts_the_requests_that_keep_every_bound(busy: Result) -> None:
    r, summary = busy.requests, busy.summary
    ttft, e2e = r.first_token_s - r.sent_s, r.last_token_s - r.sent_s
    tpot = (e2e - ttft) / (r.output_tokens - 1).clip(lower=1)
    bounds = (ttft <= 0.05, tpot <= 0.0014, e2e <= 0.4)
    assert all(0 < bound.sum() < len(r) for bound in bounds)  # each bound tells
    good = (bounds[0] & bounds[1] & bounds[2]).sum()
    assert summary["goodput_rps"] == pytest.approx(good / summary["duration_s"])


def test_cache_and_preemption_counts_agree_between_the_tables(busy: Result) -> None:
    r, steps, events, summary = busy.requests, busy.steps, busy.events, busy.summary
    assert summary["cached_tokens"] == r.cached_tokens.sum()
    assert summary["prefix_hit_rate"] == pytest.approx(r.cached_tokens.sum() / r.prompt_tokens.sum())
    preempted = events[events.kind == "preempt"]
    assert summary["num_preemptions"] == r.num_preemptions.sum() == steps.num_preempted.sum() == len(preempted)
    assert preempted.request_id.value_counts().to_dict() == (
        r[r.num_preemptions > 0].set_index("request_id").num_preemptions.to_dict()
    )
    assert events[events.kind == "evict"].num_blocks.sum() == steps.num_evicted.sum() > 0
    assert steps.num_finished.sum() == len(r)
    assert summary["num_steps"] == len(steps)
    assert steps.step.tolist() == list(range(len(steps)))


def test_tokens_of_the_steps_are_those_of_the_requests(busy: Result) -> None:
    """Each output token is sampled once; what a preemption threw away is computed again."""
    r, steps = busy.requests, busy.steps
    assert (steps.num_prefill_tokens + steps.num_decodes <= 512).all()
    assert (steps.num_prefill_tokens <= 192).all()
    once = (r.prompt_tokens - r.cached_tokens).sum()
    assert steps.num_prefill_tokens.sum() >= once
    assert steps.num_decodes.sum() <= (r.output_tokens - 1).sum()
    undisturbed = r[r.num_preemptions == 0]
    assert (undisturbed.num_chunks * 192 >= undisturbed.prompt_tokens - undisturbed.cached_tokens).all()


def test_times_of_a_request_are_in_order(busy: Result) -> None:
    r = busy.requests
    order = ["intended_s", "sent_s", "admitted_s", "first_scheduled_s", "first_token_s", "last_token_s"]
    for before, after in pairwise(order):
        assert (r[before] <= r[after]).all(), after
    assert (r.blocked_s <= r.first_scheduled_s - r.sent_s + 1e-9).all()


def test_warm_up_leaves_early_requests_out_and_changes_nothing_else(tmp_path: Path) -> None:
    whole = run_busy(tmp_path / "whole")
    cut = run_busy(tmp_path / "cut", "run.warmup_s=1.0")
    for table in ("requests", "steps", "events"):
        pd.testing.assert_frame_equal(getattr(cut, table), getattr(whole, table))
    late = cut.requests[cut.requests.sent_s >= 1.0]
    assert 50 < len(late) < 350
    assert cut.summary["num_requests"]["finished"] == len(late)
    assert cut.summary["num_warmup_requests"] == 400 - len(late)
    assert_distribution(cut.summary["ttft_s"], late.first_token_s - late.sent_s)
    assert_distribution(cut.summary["e2e_s"], late.last_token_s - late.sent_s)
    assert_distribution(cut.summary["queue_s"], late.first_scheduled_s - late.sent_s)
    gaps, total_s = cut.gaps, (late.last_token_s - late.first_token_s).sum()
    assert gaps.num_tokens.sum() == (late.output_tokens - 1).sum()
    assert (gaps.gap_s * gaps.num_tokens).sum() == pytest.approx(total_s, rel=1e-9)
    assert cut.summary["output_tokens_per_s"] == pytest.approx(
        late.output_tokens.sum() / (late.last_token_s.max() - 1.0)
    )


def test_fragmentation_is_that_of_the_steps(tmp_path: Path) -> None:
    keys = ["engine.kv_reservation=contiguous", "workload.max_tokens={fixed: 800}", "engine.async_scheduling=false"]
    result = run_busy(tmp_path, *keys)
    steps, summary = result.steps, result.summary
    loss, usable = summary["fragmentation"], summary["usable_blocks"]
    unfilled = ((usable - steps.free_blocks) * 16 - steps.kv_tokens) / (usable * 16)
    assert 0.3 < loss["internal"]["mean"] < loss["internal"]["max"] <= unfilled.max()
    assert 0 < loss["external"]["mean"] < loss["external"]["max"] <= (steps.free_blocks / usable).max()
    under_load = steps.start_s - steps.host_s < summary["windowed"]["end_s"]
    refused = steps[under_load & (steps.refused_blocks > 0)]
    assert loss["num_refused_admissions"] == len(refused) > 100
    assert 0 < loss["scattered_share"] == (refused.refused_blocks <= refused.free_blocks).mean()
    assert summary["departures"]["kv_reservation"] == {"name": "contiguous"}
    assert summary["num_preemptions"] == summary["cached_tokens"] == 0


def test_front_end_times_are_part_of_ttft_and_of_nothing_inside(tmp_path: Path) -> None:
    front = "frontend={network_s: 0.02, tokenize_s: 0.005, detokenize_s: 0.003}"
    plain, behind = run_busy(tmp_path / "plain"), run_busy(tmp_path / "behind", front)
    for key in ("ttft_s", "e2e_s"):
        assert behind.summary[key]["mean"] == pytest.approx(plain.summary[key]["mean"] + 0.028, rel=1e-9)
    assert behind.summary["itl_s"] == pytest.approx(plain.summary["itl_s"], rel=1e-9)


@pytest.mark.parametrize("depth", ["true", "false"])
def test_another_process_and_a_journal_leave_the_same_bytes(tmp_path: Path, depth: str) -> None:
    override = f"engine.async_scheduling={depth}"
    here = contents(run_busy(tmp_path / "here", override).folder)
    with_journal = contents(run_busy(tmp_path / "journal", override, journal=True).folder)
    journal = with_journal.pop("journal.jsonl.gz")
    assert with_journal == here
    there = tmp_path / "there"
    there.mkdir()
    arguments = ("run", write_scenario(there, BUSY), "-o", "out", "--set", override)
    for seed, option in (("1", []), ("2", ["--journal", "--force"])):
        done = finish(start(*arguments, *option, cwd=there, variables={"PYTHONHASHSEED": seed}))
        assert done.code == 0, done.err
        found = contents(there / "out")
        assert found.pop("journal.jsonl.gz", journal) == journal
        assert found == here


def test_another_seed_leaves_other_bytes(tmp_path: Path) -> None:
    one, other = run_busy(tmp_path / "one"), run_busy(tmp_path / "other", "run.seed=1")
    assert not one.requests.equals(other.requests)
