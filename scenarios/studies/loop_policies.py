"""Policies in the loop: one scenario under each of them, on the device and simulated, and how both rank them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...calibrate.loop.ranking import Ranked, ranked
from ...calibrate.loop.verdicts import figures_of
from ..errors import ScenarioError
from ..yaml_reading import read_yaml_mapping
from .loop_folder import LoopFolder
from .loop_twin import Twin

Variants = dict[str, dict[str, Any]]
"""By name, what each changes of the scenario: values by the path of their key."""


def read_variants(path: Path) -> Variants:
    """The variants in a YAML: a mapping of names to mappings of keys. Raises ScenarioError."""
    raw = read_yaml_mapping(path, "policies are a mapping of names to keys and values that each changes")
    for name, changes in raw.items():
        if not isinstance(name, str) or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise ScenarioError(path, str(name), "names a folder: letters, digits, - _ and . alone")
        if changes is not None and not isinstance(changes, dict):
            raise ScenarioError(path, name, "must be a mapping of keys and values, as in engine.max_num_seqs: 8")
    if len(raw) < 2:
        raise ScenarioError(path, None, "holds fewer than two policies, so there is nothing to rank")
    return {name: dict(changes or {}) for name, changes in raw.items()}


class PolicyStudy:
    """Runs and simulates variants, each into `policies/NAME`."""

    def __init__(
        self, folder: LoopFolder, repeats: int, warn: Callable[[str], None], say: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._repeats = repeats
        self._warn, self._say = warn, say

    def run(self, twins: Mapping[str, Twin]) -> dict[str, Any]:
        """Every variant, repeat by repeat, so that what changes slowly on the device touches all of them."""
        measured: dict[str, list[Any]] = {name: [] for name in twins}
        for number in range(1, self._repeats + 1):
            for name, twin in twins.items():
                self._say(f"policy {name}, run {number} of {self._repeats}")
                summary = twin.measure(self._folder, f"policies/{name}/real-{number}", self._warn)
                measured[name].append(figures_of(summary))
        simulated = {
            name: figures_of(twin.simulate(self._folder, f"policies/{name}/simulated", self._warn))
            for name, twin in twins.items()
        }
        return _figures(ranked(measured, simulated))


def _figures(found: list[Ranked]) -> dict[str, Any]:
    counted = [pair for one in found for pair in one.counted]
    return {
        "num_pairs": sum(len(one.pairs) for one in found),
        "num_beyond_noise": len(counted),
        "num_agreeing": sum(pair.agrees for pair in counted),
        "disagreeing": [pair._asdict() for pair in counted if not pair.agrees],
        "ranked": [{**one._asdict(), "pairs": [pair._asdict() for pair in one.pairs]} for one in found],
    }
