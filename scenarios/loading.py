"""From a YAML file and overrides to a checked scenario, and back to a mapping with every value explicit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from . import known_names
from .complaints import complaint
from .engine_defaults import ResolvedEngine
from .errors import ScenarioError
from .gpu_reading import is_data_sheet
from .model_reading import is_config
from .overrides import Overrides, apply_overrides
from .policy_files import policy_folders
from .preset_policies import POLICY_KEYS, resolve_policies
from .schema import Scenario
from .section import suggestion
from .yaml_reading import read_yaml_mapping


def load_scenario(path: str | Path, overrides: Overrides = ()) -> Scenario:
    """The scenario in the file at `path`, with `--set` overrides such as `engine.max_num_seqs=64` in place.

    Raises ScenarioError, one line with file, key, value and what would be right, for anything that is wrong
    with the file, the overrides, or names that the catalogues and the policy registry do not know. What
    depends on the GPU's memory and the model (`engine_defaults.resolve`) and on a trace's rows is checked
    later, before the run.
    """
    file = Path(path)
    return overridden(read_yaml_mapping(file), overrides, file)


def overridden(raw: dict[str, Any], overrides: Overrides, file: Path | None = None) -> Scenario:
    """The scenario that a mapping states once the overrides are in place; `file` as for `scenario_from`."""
    raw, set_paths = apply_overrides(raw, overrides, file)
    try:
        return scenario_from(raw, file)
    except ScenarioError as error:
        if not any(f"{error.where}.".startswith(f"{path}.") for path in set_paths):
            raise
        given = "an override" if isinstance(overrides, Mapping) else "--set"
        raise ScenarioError(file, error.where, f"{error.message} (given by {given})") from None


def scenario_from(raw: dict[str, Any], file: Path | None = None) -> Scenario:
    """The scenario that a mapping states; `file` is named in errors, and paths are relative to its folder."""
    try:
        scenario = Scenario.model_validate(raw, context={"folder": file.parent if file else Path()})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where, message = complaint(first, raw)
        raise ScenarioError(file, where, message) from None
    scenario._source = file
    _check_names(scenario)
    return scenario


def _check_names(scenario: Scenario) -> None:
    """Model, GPU and policies are known ones."""
    file = scenario.source
    if not is_config(scenario.model):
        _check_known(scenario, "model", scenario.model, known_names.model_names())
    gpu = scenario.hardware.gpu
    if gpu is not None and not is_data_sheet(gpu):
        _check_known(scenario, "hardware.gpu", gpu, known_names.gpu_names())
    resolve_policies(scenario)  # which an engine key may contradict
    folders = policy_folders(scenario)
    for kind, spec in scenario.policies.given().items():
        if wrong := known_names.policy_complaint(kind, spec, folders):
            raise ScenarioError(file, f"policies.{kind}.{wrong.key}", wrong.message)


def _check_known(scenario: Scenario, key: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise ScenarioError(scenario.source, key, f"'{name}' is unknown; {suggestion(name, known)}")


def resolved(scenario: Scenario, engine: ResolvedEngine) -> dict[str, Any]:
    """The scenario as a mapping with every default explicit: it loads again and means the same.

    Paths stay as given, relative to the original YAML's folder. The engine's keys that name policies stand
    among the policies, where they may be ones that the engine does not know.
    """
    knobs = {key: value for key, value in asdict(engine).items() if key not in POLICY_KEYS}
    whole = scenario.model_dump(mode="json", by_alias=True)
    return {**whole, "engine": knobs, "policies": resolve_policies(scenario)}
