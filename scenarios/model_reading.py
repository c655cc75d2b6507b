"""From the scenario's `model:` to the model: a known name, or the path of a Hugging Face config.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from ..policies.core import specs
from ..policies.core.hf_config import ConfigError, model_from_config
from ..policies.core.model_spec import ModelSpec
from .errors import ScenarioError
from .paths import path_given
from .schema import Scenario


def is_config(model: str) -> bool:
    """Whether the scenario's model is a file rather than a name."""
    return model.endswith(".json")


def read_model(scenario: Scenario, warn: Callable[[str], None]) -> ModelSpec:
    """The scenario's model; ScenarioError names the file and the field at fault."""
    if not is_config(scenario.model):
        return specs.model(scenario.model)
    return read_config(path_given(scenario, "model", scenario.model, warn), scenario.model)


def read_config(path: Path, name: str) -> ModelSpec:
    """The model in a config.json; ScenarioError names the file and the field at fault."""
    try:
        return model_from_config(_mapping(path), name)
    except ConfigError as error:
        raise ScenarioError(path, error.field, error.message) from None


def _mapping(path: Path) -> dict[str, object]:
    try:
        config = json.loads(path.read_bytes())
    except OSError as error:
        raise ScenarioError(path, None, f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, thousands of brackets
        raise ScenarioError(path, None, f"is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise ScenarioError(path, None, f"holds a {type(config).__name__}, not an object of fields")
    return config
