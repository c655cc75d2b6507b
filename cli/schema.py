"""`llmsim schema`: the JSON Schema of scenarios."""

from __future__ import annotations

from ..scenarios.schema import json_schema
from .speech import print_json


def schema() -> None:
    """Print the JSON Schema of scenarios, with which editors complete and check a YAML.

    Example: llmsim schema > scenario.schema.json
    """
    print_json(json_schema())
