"""Whole steps as they were measured, beside a table of kernels: what the kernels' sum is held against."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..policies.core.estimator import StepShape
from ..sim.cost_model.profile import Profile
from ..sim.cost_model.profiled import ProfiledCostModel
from ..sim.cost_model.timings import ProfileError, csv_rows, size_of, time_of

STEPS = "steps.csv.gz"
COUNTS = ("num_layers", "num_decodes", "context_tokens", "max_context", "num_samples")
REQUIRED = (*COUNTS, "chunks", "time_us", "repeats", "spread_us")
SHARED = "shared_tokens"
"""A column that tables from before do not have: nothing was shared there."""
COLUMNS = (*REQUIRED, SHARED)


class WholeStep(NamedTuple):
    """A step of a model of so many layers, and how long the device took for it."""

    num_layers: int
    shape: StepShape
    time_us: float
    repeats: int
    spread_us: float


def read_steps(folder: Path) -> list[WholeStep]:
    """The whole steps of a table's folder, none where it has none; ProfileError names the row at fault."""
    path = folder / STEPS
    return [_step(row, where) for where, row in csv_rows(path, REQUIRED)] if path.is_file() else []


def steps_csv(steps: Iterable[WholeStep]) -> str:
    """The file's text; `chunks` is `new+cached` of each, new and cached tokens, with blanks between."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for layers, shape, *times in steps:
        chunks = " ".join(f"{q}+{kv}" for q, kv in shape.prefill_chunks)
        counts = (shape.num_decodes, shape.decode_context_tokens, shape.max_decode_context, shape.num_samples)
        writer.writerow([layers, *counts, chunks, *times, shape.shared_tokens])
    return text.getvalue()


def model_of(profile: Profile, num_layers: int) -> ProfiledCostModel:
    """What prices a step of so many layers, as whole steps are run."""
    header = profile.header
    return ProfiledCostModel(
        profile,
        header.model.model(num_layers),
        header.tensor_parallel,
        kv_dtype_bytes=header.kv_dtype_bytes,
        graph_sizes=header.graph_sizes or (),
        pads_decodes_alone=header.graph_sizes is not None,
    )


def _step(row: Mapping[str, Any], where: str) -> WholeStep:
    layers, decodes, context, longest, samples = (size_of(row, name, where) for name in COUNTS)
    try:
        chunks = [tuple(map(int, word.split("+"))) for word in row["chunks"].split()]
        pairs = [(q, kv) for q, kv in chunks]
    except ValueError:
        raise ProfileError(f"{where}: chunks is {row['chunks']!r}; it must be as 512+0 128+1024") from None
    shared = size_of(row, SHARED, where) if SHARED in row else 0
    shape = StepShape(pairs, decodes, context, longest, samples, shared_tokens=shared)
    spread = float(row["spread_us"])
    return WholeStep(layers, shape, time_of(row, "time_us", where), size_of(row, "repeats", where), spread)
