"""`llmsim compare A B`: the same traffic under two settings, request by request.

Two runs with one seed see the very same requests, so the difference of a request's latency in one and in the other is
free of what makes requests differ from each other: a small effect shows in far fewer of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...sim.columns import Floats
from ...sim.intervals import half_width
from ...sim.metrics import is_real
from ...sim.percentiles import distribution
from ..api import Result
from ..errors import ScenarioError
from .flattening import difference, flat

Comparison = dict[str, Any]

NOT_TRAFFIC = ("path", "max_tokens")
"""What may differ in the workload: where a trace lies, and what clients ask for (it is shown)."""
LATENCIES = ("ttft_s", "tpot_s", "e2e_s")
SHOWN = (
    "output_tokens_per_s",
    "requests_per_s",
    "goodput_rps",
    "prefix_hit_rate",
    "num_preemptions",
    "overloaded",
    "closed_loop",
)


def compare(a: Result, b: Result) -> Comparison:
    """Latencies of both, and of the requests that both measured the differences, B less A, with 95 % intervals.

    Raises ScenarioError where the two did not see the same traffic.
    """
    check_same_traffic(a, b)
    pairs = _requests(a).add_suffix("_a").join(_requests(b).add_suffix("_b"), how="inner")
    pairs = pairs.sort_values("sent_s_a", kind="stable")
    return {
        "a": _side(a),
        "b": _side(b),
        "num_pairs": len(pairs),
        **{name: _differences(pairs, name) for name in LATENCIES},
    }


def check_same_traffic(a: Result, b: Result) -> None:
    """Same workload and seed, and the same requests; raises ScenarioError that names what differs."""
    one, other = _traffic(a.scenario), _traffic(b.scenario)
    if what := difference(one, other):
        raise _different(a, b, what)
    tokens = [result.requests.set_index("request_id")["prompt_tokens"].sort_index() for result in (a, b)]
    if not tokens[0].equals(tokens[1]):
        raise _different(a, b, "request ids or prompt lengths differ")


def _different(a: Result, b: Result, what: str) -> ScenarioError:
    return ScenarioError(b.folder, None, f"did not see the traffic of {a.folder}: {what}")


def _traffic(scenario: Mapping[str, Any]) -> dict[str, Any]:
    workload = {key: value for key, value in scenario["workload"].items() if key not in NOT_TRAFFIC}
    return flat({"workload": workload, "run": {"seed": scenario["run"]["seed"]}})


def _requests(result: Result) -> pd.DataFrame:
    """Sent and latencies of the measured requests that finished, by id."""
    requests = result.requests
    measured = requests[requests["sent_s"] >= result.scenario["run"]["warmup_s"]]
    finished = measured[measured["status"] == "finished"].set_index("request_id")
    after_first = (finished["output_tokens"] - 1).where(finished["output_tokens"] > 1)
    return pd.DataFrame(
        {
            "sent_s": finished["sent_s"],
            "ttft_s": finished["first_token_s"] - finished["sent_s"],
            "tpot_s": (finished["last_token_s"] - finished["first_token_s"]) / after_first,
            "e2e_s": finished["last_token_s"] - finished["sent_s"],
        }
    )


def _side(result: Result) -> dict[str, Any]:
    summary, scenario = result.summary, result.scenario
    return {
        "folder": str(result.folder),
        "scenario": summary["scenario"],
        "preset": summary["preset"],
        "version": summary["version"],
        "ran_on": f"{summary['gpu']}, {'real engine' if is_real(summary) else 'simulated'}",
        "seed": summary["seed"],
        "max_tokens": scenario["workload"].get("max_tokens"),
        "num_requests": summary["num_requests"],
        **{key: summary[key] for key in SHOWN},
    }


def _differences(pairs: pd.DataFrame, name: str) -> dict[str, Any]:
    both = pairs[[f"{name}_a", f"{name}_b"]].dropna()
    before, after = both.to_numpy(dtype=np.float64).T
    difference = after - before
    width = half_width(difference, _mean)
    return {
        "a": distribution(before),
        "b": distribution(after),
        "difference": {
            **distribution(difference),
            "mean_interval_95": None if width is None else [_mean(difference) - width, _mean(difference) + width],
            "share_lower": float(np.mean(difference < 0)) if len(difference) else None,
            "share_higher": float(np.mean(difference > 0)) if len(difference) else None,
        },
    }


def _mean(values: Floats) -> float:
    return float(np.mean(values))


def settings_that_differ(a: Result, b: Result) -> dict[str, tuple[Any, Any]]:
    """The keys of the resolved scenarios in which the two differ, with both values."""
    one, other = flat(a.scenario), flat(b.scenario)
    keys = dict.fromkeys([*one, *other])
    return {key: (one.get(key), other.get(key)) for key in keys if one.get(key) != other.get(key)}


def compare_folders(a: Path, b: Path) -> Comparison:
    """`compare` of two result folders, with the settings in which they differ."""
    first, second = Result.open(a), Result.open(b)
    try:
        settings = settings_that_differ(first, second)
        return {**compare(first, second), "settings": {key: list(values) for key, values in settings.items()}}
    except (KeyError, TypeError) as error:
        raise ScenarioError(None, None, f"{a} or {b} is not what a run writes: {error!r}") from None
