"""The cases with decision logs of the real engines, as files under tests/golden."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden"


def golden_names(engine: str) -> list[str]:
    """The names of an engine's cases."""
    return sorted(path.name.removesuffix(".json.gz") for path in (GOLDEN / engine).glob("*.json.gz"))


def golden_case(engine: str, name: str) -> dict[str, Any]:
    """A case: `config`, `requests`, and the `log` that the real engine wrote."""
    case: dict[str, Any] = json.loads(gzip.decompress((GOLDEN / engine / f"{name}.json.gz").read_bytes()))
    return case
