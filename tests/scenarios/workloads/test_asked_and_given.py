"""What each generator's YAML asks is what its traffic has: lengths, arrivals, prefix share, ideal hit rate.

Each figure is measured over eight seeds; what was asked, computed by hand, must lie in the interval that holds the mean
of such figures in 999 of 1,000 cases (Student's t). Shared parts are whole blocks of 16 tokens, so that nothing is lost
to rounding.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.schema_workload import workload_types
from llmsim.scenarios.traffic_report import observe, traffic_report
from llmsim.tests.support.generators import scenario_with

NUM = 600
SEEDS = range(8)
T_OF_999 = 5.408
"""Student's t with 7 degrees of freedom, two-sided."""
WIDEST = 0.2
"""Of an interval, against what was asked: a wider one would prove little."""

QUESTION = {"lognormal": {"mean": 120, "cv": 0.8}}
OUTPUT = {"uniform": {"min": 20, "max": 60}}
ROWS = Path(__file__).parents[2] / "support" / "prefix_reuse_rows.csv"


def zipf(num: int, exponent: float) -> np.ndarray[Any, Any]:
    weights = np.arange(1, num + 1.0) ** -exponent
    return np.asarray(weights / weights.sum())


def first_seen(shares: np.ndarray[Any, Any], num: int = NUM) -> float:
    """How many things of those shares are expected to be seen at least once in so many draws."""
    return float((1 - (1 - shares) ** num).sum())


def agent() -> tuple[dict[str, Any], dict[str, float]]:
    tenants, repositories = zipf(5, 1.0), zipf(3, 1.0)
    hits = NUM * (64 + 128 + 256) - first_seen(tenants) * 192 - first_seen(np.outer(tenants, repositories)) * 256
    asked = {
        **{"tenants": 5, "repositories": 3, "system_tokens": 64, "tools_tokens": 128, "repository_tokens": 256},
        **{"question_tokens": QUESTION, "output_tokens": OUTPUT, "arrivals": "gamma", "burstiness": 0.25},
    }
    given = {"prompt": 568, "output": 40, "cv": 2.0, "hits": hits / (NUM * 568)}
    return asked, {**given, "sharing": 1 - first_seen(tenants) / NUM}


def few_shot() -> tuple[dict[str, Any], dict[str, float]]:
    tasks = first_seen(zipf(8, 0.5))
    asked = {
        **{"tasks": 8, "task_zipf": 0.5, "examples": 2, "instruction_tokens": 96, "example_tokens": 160},
        **{"question_tokens": QUESTION, "output_tokens": OUTPUT, "arrivals": "poisson"},
    }
    sharing = 1 - tasks / NUM
    return asked, {"prompt": 536, "output": 40, "cv": 1.0, "hits": sharing * 416 / 536, "sharing": sharing}


def generated_shared_prefix() -> tuple[dict[str, Any], dict[str, float]]:
    asked = {
        **{"num_groups": 20, "prompts_per_group": NUM // 20, "system_prompt_len": 320},
        **{"question_len": QUESTION, "output_len": OUTPUT, "arrivals": "constant"},
    }
    sharing = 1 - 20 / NUM
    return asked, {"prompt": 440, "output": 40, "cv": 0.0, "hits": sharing * 320 / 440, "sharing": sharing}


def independent() -> tuple[dict[str, Any], dict[str, float]]:
    asked = {"prompt_tokens": QUESTION, "output_tokens": OUTPUT, "arrivals": "gamma", "burstiness": 4.0}
    return asked, {"prompt": 120, "output": 40, "cv": 0.5, "hits": 0.0, "sharing": 0.0}


def mixture() -> tuple[dict[str, Any], dict[str, float]]:
    share, tasks = 0.75, zipf(4, 1.0)
    few = {"type": "few_shot", "tasks": 4, "examples": 1, "instruction_tokens": 80, "example_tokens": 80}
    own = {"question_tokens": QUESTION, "output_tokens": OUTPUT}
    alone = {"type": "independent", "prompt_tokens": 200, "output_tokens": 10}
    parts = [{"tenant": "a", "weight": 3, "workload": few | own}, {"tenant": "b", "workload": alone}]
    sharing = share - first_seen(share * tasks) / NUM
    prompt = share * 280 + (1 - share) * 200
    given = {"prompt": prompt, "output": share * 40 + (1 - share) * 10, "cv": 1.0}
    return {"parts": parts}, {**given, "hits": sharing * 160 / prompt, "sharing": sharing}


def multi_turn() -> tuple[dict[str, Any], dict[str, float]]:
    """Three turns: prompts of 128, 208 and 288 tokens; each finds the one before and its answer, of 48 tokens."""
    asked = {
        **{"sessions": NUM // 3, "turns": 3, "system_tokens": 96, "user_tokens": 32, "output_tokens": 48},
        **{"think_s": {"exponential": 1.0}, "arrivals": "constant", "rate": 0.001},
    }
    sessions = NUM // 3
    hits = ((sessions - 1) * 96 + sessions * (176 + 256)) / (sessions * (128 + 208 + 288))
    return asked, {"prompt": 208, "output": 48, "hits": hits, "sharing": 1 - 1 / NUM}


def prefix_reuse() -> tuple[dict[str, Any], dict[str, float]]:
    prompt, output, blocks, _, _ = np.loadtxt(ROWS, delimiter=",", skiprows=1).T
    given = {"prompt": float(prompt.mean()), "output": float(output.mean()), "cv": 1.0}
    return {}, {**given, "hits": float(16 * blocks.sum() / prompt.sum()), "sharing": float((blocks > 0).mean())}


def rag() -> tuple[dict[str, Any], dict[str, float]]:
    asked = {
        **{"corpus": 30, "document_zipf": 1.0, "documents": 1, "system_tokens": 96, "document_tokens": 192},
        **{"question_tokens": QUESTION, "output_tokens": OUTPUT},
    }
    hits = (NUM - 1) * 96 + (NUM - first_seen(zipf(30, 1.0))) * 192
    return asked, {"prompt": 408, "output": 40, "cv": 1.0, "hits": hits / (NUM * 408), "sharing": 1 - 1 / NUM}


GENERATORS = {
    one.__name__: one
    for one in (agent, few_shot, generated_shared_prefix, independent, mixture, multi_turn, prefix_reuse, rag)
}


def figures(kind: str, seed: int, asked: dict[str, Any]) -> dict[str, float]:
    count = {} if kind in ("multi_turn", "generated_shared_prefix") else {"requests": NUM}
    report = traffic_report(observe(assemble(scenario_with(kind, seed, **count, **asked)), print))
    assert report["num_requests"] == NUM
    return {
        "prompt": report["prompt_tokens"]["mean"],
        "output": report["output_tokens"]["mean"],
        "cv": report["arrival_cv"],
        "hits": report["ideal_hit_rate"],
        "sharing": report["shared_prefix_share"],
    }


def test_every_generator_is_held_to_what_it_is_asked() -> None:
    assert [kind for kind in workload_types() if kind != "trace"] == sorted(GENERATORS)


@pytest.mark.parametrize("kind", sorted(GENERATORS))
def test_lengths_arrivals_and_sharing_are_what_the_yaml_asks(kind: str) -> None:
    asked, expected = GENERATORS[kind]()
    runs = [figures(kind, seed, asked) for seed in SEEDS]
    for name, value in expected.items():
        sample = np.array([run[name] for run in runs])
        half = T_OF_999 * float(sample.std(ddof=1)) / math.sqrt(len(sample))
        assert half <= WIDEST * max(value, 0.05), name
        assert abs(float(sample.mean()) - value) <= half + 1e-9, (name, float(sample.mean()), value, half)


@pytest.mark.parametrize("exponent", [-1.0, -0.001, 20.5, math.inf, math.nan])
@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("agent", "tenant_zipf"),
        ("agent", "repository_zipf"),
        ("few_shot", "task_zipf"),
        ("rag", "document_zipf"),
    ],
)
def test_a_zipf_that_does_not_converge_is_one_line(kind: str, key: str, exponent: float) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario_with(kind, **{key: exponent})
    assert str(caught.value).startswith(f"workload.{key}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "key"), [("agent", "tenants"), ("agent", "repositories"), ("few_shot", "tasks"), ("rag", "corpus")]
)
@pytest.mark.parametrize("num", [0, -3, math.inf, 10**12])
def test_a_zipf_over_nothing_or_without_end_is_one_line(kind: str, key: str, num: float) -> None:
    """With an exponent of 1 or less, shares of infinitely many things have no sum."""
    with pytest.raises(ScenarioError, match=rf"^workload\.{key}: "):
        scenario_with(kind, **{key: num})
