"""How often a single run's 95 % interval holds the long-run value.

    python -m llmsim.tests.benchmarks.interval_coverage [--scenario chat] [--repeats 400] [--requests 10000] [--json]

The same stationary scenario is run under many seeds; the long-run value is that of a few far longer runs with other
seeds. A short run's percentile may be off on average (its bias, part of what the interval has to cover) and is off by
chance; an interval as wide as it need be for the latter alone has the width ratio 1. Exits 1 where the interval of the
P99 TTFT holds the long-run value in less than 92 % of the repeats. Takes minutes.

    chat   8 slots of a GPU with short chats of random lengths, 25 a second: a fifth of the requests wait
    md1    one slot, each request the same, 40 a second: an M/D/1 queue at load 0.5
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

import llmsim
from llmsim.sim.student_t import mean_interval

FIGURES = ("ttft_s.p99", "ttft_s.p50", "ttft_s.mean", "itl_s.p99")
DECISIVE, LEAST = "ttft_s.p99", 0.92
LONG_SEEDS = 1_000_000
"""Far from the short runs' seeds."""

_ONE_GPU = {"model": "llama-3.1-8b", "hardware": {"gpu": "h100-sxm"}, "run": {"warmup_s": 20}}
_CHAT = {
    "type": "independent",
    "rate": 25.0,
    "prompt_tokens": {"lognormal": {"mean": 500, "cv": 1.0, "max": 4000}},
    "output_tokens": {"lognormal": {"mean": 24, "cv": 0.8, "max": 200}},
}
SCENARIOS: dict[str, dict[str, Any]] = {
    "chat": {"name": "chat", **_ONE_GPU, "engine": {"max_num_seqs": 8}, "workload": _CHAT},
    "md1": {
        "name": "md1",
        **_ONE_GPU,
        "engine": {"max_num_seqs": 1, "async_scheduling": False, "enable_prefix_caching": False},
        "workload": {"type": "independent", "rate": 40.0, "prompt_tokens": 512, "output_tokens": 1},
    },
}


def coverage(short: pd.DataFrame, long: pd.DataFrame, figure: str) -> dict[str, Any] | None:
    """How the intervals of the short runs compare with the long-run value; None where there is no such figure."""
    if short[figure].isna().all():
        return None
    values = short[figure].to_numpy(dtype=np.float64)
    low, high = (short[f"intervals_95.{figure}.{end}"].to_numpy(dtype=np.float64) for end in ("low", "high"))
    truth, sd = float(long[figure].mean()), float(np.std(values, ddof=1))
    half_width = float(np.nanmean(high - low)) / 2
    return {
        "long_run": truth,
        "long_run_interval_95": mean_interval(long[figure].tolist()),
        "short_run_mean": float(values.mean()),
        "bias": float(values.mean()) / truth - 1,
        "short_run_sd": sd,
        "num_intervals": int(np.isfinite(low).sum()),
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
        "all_below": float(np.mean(high < truth)),
        "all_above": float(np.mean(low > truth)),
        "mean_half_width": half_width,
        "width_ratio": half_width / (1.96 * sd),
    }


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """The coverage of each figure."""
    scenario = SCENARIOS[asked.scenario]
    runs = [
        llmsim.sweep(
            scenario, {}, seeds=seeds, overrides={"workload.requests": requests, "run.seed": first}, jobs=asked.jobs
        )
        for seeds, requests, first in (
            (asked.repeats, asked.requests, 0),
            (asked.long_runs, asked.long_requests, LONG_SEEDS),
        )
    ]
    return {**vars(asked), "figures": {figure: coverage(*runs, figure) for figure in FIGURES}}


def print_table(report: dict[str, Any]) -> None:
    """For people, on stderr."""
    title = (
        f"{report['scenario']}: {report['repeats']:,} runs of {report['requests']:,} requests; "
        f"long-run values of {report['long_runs']:,} x {report['long_requests']:,}"
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in (
        "",
        "long run, ms",
        "±",
        "short runs",
        "bias",
        "sd",
        "covered",
        "too low",
        "too high",
        "half",
        "ratio",
    ):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for name, found in report["figures"].items():
        if found is None:
            continue
        low, high = found["long_run_interval_95"]
        times = (found["long_run"], (high - low) / 2, found["short_run_mean"])
        cells = [f"{value * 1e3:.4g}" for value in times]
        cells += [f"{found['bias']:+.1%}", f"{found['short_run_sd'] * 1e3:.3g}"]
        cells += [f"{found[key]:.1%}" for key in ("coverage", "all_below", "all_above")]
        table.add_row(name, *cells, f"{found['mean_half_width'] * 1e3:.3g}", f"{found['width_ratio']:.2f}")
    Console(stderr=True, width=120).print(table)


def main() -> None:
    """Print the table, and with --json the same figures on stdout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="chat")
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--long-runs", type=int, default=16)
    parser.add_argument("--long-requests", type=int, default=100_000)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    report = measure(asked)
    print_table(report)
    if asked.json:
        print(json.dumps(report, indent=2, allow_nan=False))
    sys.exit(report["figures"][DECISIVE]["coverage"] < LEAST)


if __name__ == "__main__":
    main()
