"""Reads the JSON files of a model's folder."""

from __future__ import annotations

import json
from pathlib import Path

from .errors import ModelError


def read_json(path: Path) -> dict[str, object]:
    """The object that a file holds. Raises ModelError where there is none."""
    try:
        parsed = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ModelError(f"{path}: is not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise ModelError(f"{path}: must hold a JSON object")
    return parsed
