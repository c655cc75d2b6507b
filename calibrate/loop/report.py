"""The report of a loop, as Markdown out of its figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...sim.duration_text import duration_text

Figures = Mapping[str, Any]
NAMES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "itl_s": "ITL", "e2e_s": "E2E"}
LATENCIES, STEPS, POLICIES = "latencies.png", "steps.png", "policies.png"


def report(figures: Figures, made_at: str) -> str:
    """The whole text; pictures lie beside it."""
    parts = [
        f"# {figures['scenario']}: simulated and for real\n",
        *_conditions(figures, made_at),
        *_latencies(figures),
        *_steps(figures),
        *_decisions(figures),
        *_correction(figures["correction"]),
        *_policies(figures["policies"]),
    ]
    return "\n".join(parts).rstrip() + "\n"


def percent(value: float | None) -> str:
    """A share with its sign."""
    return "-" if value is None else f"{round(100 * value, 1) + 0.0:+.1f} %"  # + 0.0: no -0.0


def size(value: float | None) -> str:
    """A share without a sign."""
    return "-" if value is None else f"{100 * value:.1f} %"


def seconds(value: float | None) -> str:
    """A duration in a unit that suits."""
    return "-" if value is None else duration_text(value)


def divergence_said(found: Figures) -> str:
    """Where two runs first decide differently, in words."""
    if found["step"] is None:
        return f"never differ: all {found['num_steps']:,} steps are the same"
    return f"first differ at step {found['step']:,} of {found['num_steps']:,}, in {', '.join(found['differs'])}"


def _conditions(figures: Figures, made_at: str) -> Iterable[str]:
    run, profile, traffic = figures["runs_on"], figures["profile"], figures["traffic"]
    yield f"Made {made_at} by `llmsim calibrate loop`.\n"
    yield _table(("what", ""), _condition_rows(run, profile, traffic, figures["load_average"]))
    for said in profile["forced_since"]:
        yield f"**Forced:** the profile is not of this run: {said}.\n"
    if profile["noise"]:
        yield f"**Noisy:** {profile['noise']}.\n"


def _condition_rows(run: Figures, profile: Figures, traffic: Figures, load: Figures) -> Iterable[Sequence[str]]:
    threads = f", {run['threads']} thread{'s' * (run['threads'] > 1)}" if run["threads"] else ""
    blocks = f"{run['usable_blocks']:,} KV blocks on both"
    yield "device", f"{profile['device']} ({run['device']}{threads})"
    yield "model, engine", f"{run['model']}, {run['dtype']}, {run['preset']}, {blocks}"
    yield "software", profile["software"]
    yield "clock", f"{run['clock']}; a step's time is {run['step_time']}"
    yield "load of the machine", " → ".join(_load(load[when]) for when in ("before", "after"))
    held_out = profile["held_out"]
    errors = "" if held_out is None else f"; held-out kernels: {_medians(held_out)}"
    yield "profile", f"measured {profile['measured_at']}{errors}"
    yield "requests", f"{traffic['num_requests']:,}"
    for key, name in (("num_steps", "steps"), ("num_preemptions", "preemptions")):
        yield f"{name}, measured and simulated", " and ".join(f"{value:,}" for value in traffic[key])
    yield "prefix hits, measured and simulated", " and ".join(size(value) for value in traffic["prefix_hit_rate"])


def _load(averages: Sequence[float]) -> str:
    return f"{averages[0]:.1f} (15 minutes: {averages[2]:.1f})"


def _medians(errors: Figures) -> str:
    return f"median error {size(errors['median'])}, P95 {size(errors['p95'])}"


def _latencies(figures: Figures) -> Iterable[str]:
    counts = figures["verdicts"]
    yield "## Latencies\n"
    yield (
        f"{counts['within']} within their bounds, {counts['beyond']} beyond, {counts['inconclusive']} inconclusive. "
        "*Noise* is how far the repeats of the real run differ; where that is more than the bound, or there was one "
        "run only, nothing is concluded.\n"
    )
    rows = [
        (NAMES[metric], name.upper() if name != "mean" else name, *_compared(row))
        for metric, statistics in figures["latencies"].items()
        for name, row in statistics.items()
    ]
    yield _table(("", "", "measured", "simulated", "error", "noise", "bound", "verdict"), rows)
    yield f"![Cumulated latencies]({LATENCIES})\n"
    yield (
        "The device's own pace, all steps measured beside their price, and the fastest and the slowest tenth of a run: "
        f"{'; '.join(_pace(name, found) for name, found in figures['pace'].items())}. What differs among these is the "
        "device's doing; what they share is the profile's error, or how fast the device was while it was measured.\n"
    )


def _pace(name: str, found: Figures) -> str:
    return f"{name} {percent(found['whole'])} ({percent(found['fastest'])} to {percent(found['slowest'])})"


def _compared(row: Figures) -> Sequence[str]:
    values = (seconds(row["measured"]), seconds(row["simulated"]), percent(row["error"]), size(row["noise"]))
    return *values, f"{row['bound']:.0%}", str(row["verdict"])


def _steps(figures: Figures) -> Iterable[str]:
    yield "## Steps\n"
    yield "Every step of the first real run that computes something, priced by the profile, which has not seen it.\n"
    yield _table(STEP_COLUMNS, [(kind, *_step_row(row)) for kind, row in figures["steps"].items()])
    yield f"![Steps by their kind]({STEPS})\n"


STEP_COLUMNS = ("steps", "number", "median time", "median error", "P95", "bias", "beyond the profile")


def _step_row(row: Figures) -> Sequence[str]:
    number, outside = f"{row['num_steps']:,}", f"{row['num_extrapolated']:,}"
    return number, seconds(row["measured_s"]), size(row["median"]), size(row["p95"]), percent(row["bias"]), outside


def _decisions(figures: Figures) -> Iterable[str]:
    yield "## Decisions\n"
    for name, replayed in figures["replays"].items():
        outcome = "identical" if replayed["difference"] is None else f"**differs**: {replayed['difference']}"
        yield f"- {name}, its journal through a fresh core: {replayed['num_plans']:,} plans, {outcome}"
    yield f"- running free, the simulation's decisions and the device's {divergence_said(figures['divergence'])}"
    if figures["divergence_of_repeats"] is not None:
        yield f"- those of two real runs {divergence_said(figures['divergence_of_repeats'])}"
    yield ""


def _correction(found: Figures) -> Iterable[str]:
    yield "## A correction learned from recorded steps\n"
    outside = f"Of its {found['num_steps']:,} simulated steps {found['num_outside']:,} were outside of what it had seen"
    yield (
        "A line in tokens, decodes and context of each kind of step, by ridge regression on the first real run; "
        f"tried on a run with seed {found['seed']}. {outside}, and stayed as they were.\n"
    )
    rows = [
        (f"{kind}, {name}", *_step_row(row))
        for kind, pair in found["steps"].items()
        for name, row in zip(("profile", "corrected"), pair, strict=True)
    ]
    yield _table(STEP_COLUMNS, rows)
    rows = [
        (NAMES[metric], *(_both(statistics[name]) for name in statistics))
        for metric, statistics in found["latencies"].items()
    ]
    names = [name if name == "mean" else name.upper() for name in next(iter(found["latencies"].values()))]
    yield "Errors of that run's latencies, by the profile → corrected:\n"
    yield _table(("", *names), rows)


def _both(row: Figures) -> str:
    return f"{percent(row['without'])} → {percent(row['with'])}"


def _policies(found: Figures | None) -> Iterable[str]:
    if found is None:
        return
    yield "## Policies\n"
    yield (
        f"Of {found['num_pairs']} pairs of policies and statistics {found['num_beyond_noise']} differ on the device by "
        "more than the noise (the largest difference between two repeats of any policy); the simulator ranks "
        f"{found['num_agreeing']} of those alike.\n"
    )
    ranked = found["ranked"]
    header = ("measured / simulated", *(f"{NAMES[one['metric']]} {one['statistic']}" for one in ranked))
    rows = [(name, *(_side_by_side(one, name) for one in ranked)) for name in ranked[0]["measured"]]
    yield _table(header, [*rows, ("noise", *(size(one["noise"]) for one in ranked))])
    for pair in found["disagreeing"]:
        (one,) = [one for one in ranked if all(one[key] == pair[key] for key in ("metric", "statistic"))]
        both = [f"{name} {_side_by_side(one, name)}" for name in (pair["first"], pair["second"])]
        yield f"- not alike: {pair['statistic']} {NAMES[pair['metric']]}, measured / simulated: {', '.join(both)}"
    yield f"\n![Policies by their latencies]({POLICIES})\n"


def _side_by_side(one: Figures, name: str) -> str:
    return f"{seconds(one['measured'][name])} / {seconds(one['simulated'][name])}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
