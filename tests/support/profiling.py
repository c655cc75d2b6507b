"""A model and a grid so small that all of it is timed in a second or two."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmsim.real_engine.profiler import grids, peaks, visit
from llmsim.real_engine.profiler.grids import Grid
from llmsim.scenarios.studies.profile_device import ProfileStudy
from llmsim.scenarios.studies.profile_setup import Wishes

GRID = Grid(
    tokens=(24,),
    rows=(5,),
    batches=(1, 2, 3, 4),
    contexts=(16, 48, 96),
    most_context=256,
    chunks=(2, 8, 32),
    cached=(0, 16, 64),
    most_pairs=1 << 12,
    num_unequal=4,
    num_joint=2,
    num_whole=8,
    most_step_tokens=48,
    host_batches=(1, 4),
)
FEW = replace(
    GRID,
    tokens=(),
    rows=(),
    batches=(1, 3),
    contexts=(16, 96),
    most_context=192,
    chunks=(2, 32),
    cached=(0, 64),
    num_unequal=1,
    num_joint=1,
    num_whole=1,
    host_batches=(1, 2),
)
"""Too few points for a fit."""
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "vocab_size": 128,
    "max_position_embeddings": 512,
}


def be_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `small` be the grid of few steps, each repeated little, and peaks be measured in no time."""
    monkeypatch.setitem(grids.GRIDS, "small", FEW)
    monkeypatch.setattr(visit, "MOST_REPEATS", 3)
    monkeypatch.setattr(peaks, "BUDGET_S", 0.002)
    monkeypatch.setattr(peaks, "COPY_BYTES", (1 << 16, 1 << 20))
    monkeypatch.setattr(peaks, "LARGE_BYTES", 1 << 20)


def small_model(folder: Path) -> Path:
    """The config.json of a model of two layers."""
    path = folder / "config.json"
    path.write_text(json.dumps(CONFIG))
    return path


def wishes_for(folder: Path, **others: Any) -> Wishes:
    """The small grid on a CPU in float32, unless said otherwise."""
    return Wishes(**{"model": str(small_model(folder)), "device": "cpu", "grid": "small", "dtype": "fp32"} | others)


def study_in(folder: Path, *, force: bool = False, **others: Any) -> ProfileStudy:
    """The study that measures it into `folder / "table"`."""
    return ProfileStudy(wishes_for(folder, **others), folder / "table", force=force, warn=lambda _: None)
