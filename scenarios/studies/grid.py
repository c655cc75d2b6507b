"""The points of a sweep: every combination of the values given for each key, and every seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ..errors import ScenarioError
from ..overrides import checked_path
from ..yaml_reading import parse_yaml

Vary = Mapping[str, Sequence[object]]
"""The values that each key of the scenario takes: `{"workload.rate": [4, 8, 16]}`."""
SEED = "run.seed"


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a sweep: the values that its keys take, and its seed."""

    values: Mapping[str, object]
    seed: int

    def overrides(self) -> dict[str, object]:
        """What makes the scenario this point."""
        return {**self.values, SEED: self.seed}


def grid(vary: Vary, first_seed: int, num_seeds: int) -> list[Point]:
    """All points, the last key varying fastest but for the seed."""
    combinations = [dict(zip(vary, values, strict=True)) for values in product(*vary.values())]
    seeds = range(first_seed, first_seed + num_seeds)
    return [Point(values, seed) for values in combinations for seed in seeds]


def parse_vary(options: Iterable[str]) -> dict[str, list[object]]:
    """`KEY=a,b,c` of each `--vary`; a value is written as YAML. Raises ScenarioError."""
    vary: dict[str, list[object]] = {}
    for option in options:
        given = f"--vary {option}"
        key, equals, text = option.partition("=")
        if not equals:
            raise ScenarioError(given, None, "write --vary KEY=a,b,c, as in workload.rate=4,8,16")
        key, values = checked_path(key, given), parse_yaml(f"[{text}]", given)
        if key in vary:
            raise ScenarioError(given, None, f"{key} is varied twice; give all its values at once")
        vary[key] = values if isinstance(values, list) else [values]
    check_vary(vary)
    return vary


def check_vary(vary: Vary) -> None:
    """Each key has values, no value twice, and no key lies in another. Raises ScenarioError."""
    for key, values in vary.items():
        texts = [json.dumps(value, sort_keys=True, default=str) for value in values]
        if not texts:
            raise ScenarioError(f"--vary {key}", None, "has no values; write --vary KEY=a,b,c")
        if twice := [text for text in texts if texts.count(text) > 1]:
            raise ScenarioError(f"--vary {key}", None, f"holds {twice[0]} twice")
        if key == SEED:
            raise ScenarioError(f"--vary {key}", None, "is not varied; --seeds N counts from it")
        if above := [other for other in vary if key.startswith(f"{other}.")]:
            raise ScenarioError(f"--vary {key}", None, f"lies in {above[0]}, which is varied as well")


def column(values: Sequence[object]) -> list[object]:
    """Values of a key as one column of a table: numbers, truths or texts as they are, a mixture as JSON."""
    for kinds in ((bool,), (int, float), (str,)):
        if all(isinstance(value, kinds) and (kinds == (bool,) or type(value) is not bool) for value in values):
            return list(values)
    return [value if isinstance(value, str) else json.dumps(value, sort_keys=True) for value in values]
