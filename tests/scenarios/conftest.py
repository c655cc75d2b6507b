"""Names that scenarios may use in these tests, whatever the catalogue holds."""

from __future__ import annotations

import pytest

from llmsim.scenarios import known_names


@pytest.fixture(autouse=True)
def small_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_names, "model_names", lambda: ("llama-3.1-8b", "tiny"))
    monkeypatch.setattr(known_names, "gpu_names", lambda: ("a100-80g", "h100-sxm", "h200-sxm"))
