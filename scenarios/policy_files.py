"""Policies that stand in a file: found beside the scenario's YAML, or else in the working directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..policies import registry
from ..policies.finding import Folders, file_of, is_reference, source_digest
from .preset_policies import PolicySpecs
from .schema import Scenario


def policy_folders(scenario: Scenario) -> tuple[Path, Path]:
    """Where relative paths of policies are looked for: the scenario's folder, then the working directory."""
    return scenario.path_to("").resolve(), Path.cwd()


def warn_of_strays(scenario: Scenario, specs: PolicySpecs, warn: Callable[[str], None]) -> None:
    """Say so where a file is taken from the working directory and not from the scenario's folder."""
    beside, here = policy_folders(scenario)
    for kind, spec in specs.items():
        name = str(spec["name"])
        if is_reference(name) and file_of(name, (here,)) and not file_of(name, (beside,)):
            file = name.rpartition(":")[0]
            warn(f"policies.{kind}.name: {file} is taken from the working directory, not the scenario's folder")


def source_digests(specs: PolicySpecs, folders: Folders) -> dict[str, str]:
    """The SHA-256 of the file of each policy that is none of the house's, by kind."""
    digests = {kind: source_digest(registry.find(kind, spec["name"], folders)) for kind, spec in specs.items()}
    return {kind: digest for kind, digest in digests.items() if digest is not None}
