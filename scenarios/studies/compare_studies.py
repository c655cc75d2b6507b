"""`llmsim compare A B` of two sweeps, or of two replications: setting by setting, paired by seed.

A seed makes the same traffic in both, so the difference of a figure is free of what the seeds differ by; how much it
varies from seed to seed says how sure its mean is (Student's t).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from ...sim.student_t import mean_interval
from ..errors import ScenarioError
from ..schema_workload import WorkloadSettings
from .compare import NOT_TRAFFIC, check_same_traffic
from .flattening import flat
from .study_reading import Figures, Setting, Study, figures, open_study

StudyComparison = dict[str, Any]


def compare_study_folders(a: Path, b: Path) -> StudyComparison:
    """Each figure's difference, B less A, in each setting, with its 95 % interval over the seeds.

    Raises ScenarioError, one line, where settings, seeds or traffic of the two do not match.
    """
    one, other = open_study(a), open_study(b)
    _check_pairs(one, other)
    _check_traffic(one, other)
    before, after = flat(one.scenario), flat(other.scenario)
    differing = [key for key in dict.fromkeys([*before, *after]) if before.get(key) != after.get(key)]
    varied = tuple(f"{key}." for key in one.keys)
    return {
        "a": _side(one),
        "b": _side(other),
        "settings": {
            key: [before.get(key), after.get(key)] for key in differing if not f"{key}.".startswith(varied or ("\0",))
        },
        "points": [_point(one, other, setting) for setting in one.settings()],
    }


def _check_pairs(a: Study, b: Study) -> None:
    if a.keys != b.keys:
        varied = [", ".join(study.keys) or "nothing but seeds" for study in (a, b)]
        raise ScenarioError(b.folder, None, f"varies {varied[1]}, {a.folder} varies {varied[0]}")
    for one, other in ((a, b), (b, a)):
        if missing := [pair for pair in one.runs if pair not in other.runs]:
            setting, seed = missing[0]
            which = ", ".join([*_named(one, setting), f"seed {seed}"])
            raise ScenarioError(other.folder, None, f"has no run with {which}, which {one.folder} has")


def _check_traffic(a: Study, b: Study) -> None:
    """Same traffic in each setting; seeds are the same already."""
    for setting in a.settings():
        one, other = (_traffic(study, setting) for study in (a, b))
        for key in [*one, *other]:
            if one.get(key) != other.get(key):
                raise _different(a, b, f"{key} is {one.get(key)} in the one and {other.get(key)} in the other")
    if a.files and b.files and a.files != b.files:
        raise _different(a, b, "the files that it is read from are not the same")
    for seed in a.results.keys() & b.results.keys():
        check_same_traffic(a.results[seed], b.results[seed])


def _different(a: Study, b: Study, what: str) -> ScenarioError:
    return ScenarioError(b.folder, None, f"did not see the traffic of {a.folder}: {what}")


def _traffic(study: Study, setting: Setting) -> dict[str, Any]:
    """The workload with its defaults, without what may differ."""
    stated = study.stated(tuple(_restored(value) for value in setting))
    workload = TypeAdapter(WorkloadSettings).validate_python(stated["workload"], context={"folder": Path()})
    whole = workload.model_dump(mode="json", by_alias=True)
    return flat({"workload": {key: value for key, value in whole.items() if key not in NOT_TRAFFIC}})


def _restored(value: object) -> object:
    """A value that a table holds as JSON, as it was."""
    return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value


def _named(study: Study, setting: Setting) -> list[str]:
    return [f"{key}={value}" for key, value in zip(study.keys, setting, strict=True)]


def _side(study: Study) -> dict[str, Any]:
    run = next(iter(study.runs.values()))
    return {"folder": str(study.folder), **{key: run[key] for key in ("scenario", "preset", "version", "closed_loop")}}


def _point(a: Study, b: Study, setting: Setting) -> dict[str, Any]:
    seeds = a.seeds(setting)
    runs = [[study.runs[setting, seed] for seed in seeds] for study in (a, b)]
    before, after = ([figures(run) for run in of] for of in runs)
    common = [path for path in before[0] if all(path in run for run in (*before, *after))]
    return {
        "values": dict(zip(a.keys, setting, strict=True)),
        "seeds": seeds,
        "num_overloaded": {
            side: sum(bool(run["overloaded"]) for run in of) for side, of in zip("ab", runs, strict=True)
        },
        "figures": {path: _difference(before, after, path) for path in common},
    }


def _difference(a: list[Figures], b: list[Figures], path: str) -> dict[str, Any]:
    before, after = (np.array([run[path] for run in runs]) for runs in (a, b))
    difference = after - before
    return {
        "a": float(before.mean()),
        "b": float(after.mean()),
        "difference": float(difference.mean()),
        "interval_95": mean_interval(difference.tolist()),
    }
