"""What the lower floors know by name: models, GPUs, policies. Asked through here alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from ..policies.core import specs
from ..policies.registry import PolicyError, check


class Complaint(NamedTuple):
    """What the registry has against a policy: the key at fault (`name` or a parameter), and why."""

    key: str
    message: str


def model_names() -> Collection[str]:
    """Names of the models that the catalogue holds."""
    return specs.model_names()


def gpu_names() -> Collection[str]:
    """Names of the GPUs that the catalogue holds."""
    return specs.gpu_names()


def policy_complaint(kind: str, spec: dict[str, object], folders: Iterable[Path]) -> Complaint | None:
    """None where the registry knows the policy and its parameters; else what is wrong with them."""
    try:
        check(kind, spec, folders)
    except PolicyError as error:
        return Complaint(error.key, str(error))
    return None
