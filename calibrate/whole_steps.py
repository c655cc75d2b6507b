"""Whole steps as they were measured, beside a table of kernels: what the kernels' sum is held against."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..policies.core.estimator import StepShape
from ..sim.cost_model.header_parts import MOST
from ..sim.cost_model.profile import Profile
from ..sim.cost_model.profiled import ProfiledCostModel
from ..sim.cost_model.timings import ProfileError, csv_rows, size_of, time_of
from .checks import LEAST_US
from .step_shapes import impossible

STEPS = "steps.csv.gz"
COUNTS = ("num_layers", "num_decodes", "context_tokens", "max_context", "num_samples")
REQUIRED = (*COUNTS, "chunks", "time_us", "repeats", "spread_us")
SHARED = "shared_tokens"
"""A column that tables from before do not have: nothing was shared there."""
COLUMNS = (*REQUIRED, SHARED)
MOST_LAYERS = 10_000
HOUR_US = 3600e6


class WholeStep(NamedTuple):
    """A step of a model of so many layers, and how long the device took for it."""

    num_layers: int
    shape: StepShape
    time_us: float
    repeats: int
    spread_us: float | None = None
    """None: not recorded."""


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
    layers = _size(row, "num_layers", where, 1, MOST_LAYERS)
    decodes, context, longest, samples = (_size(row, name, where) for name in COUNTS[1:])
    shared = _size(row, SHARED, where) if SHARED in row else 0
    shape = StepShape(_chunks(row["chunks"], where), decodes, context, longest, samples, shared_tokens=shared)
    if reason := impossible(shape):
        raise ProfileError(f"{where}: {reason}")
    time_us, repeats = time_of(row, "time_us", where), _size(row, "repeats", where, 1)
    if not (least_us := LEAST_US * layers) <= time_us <= HOUR_US:
        says = f"a step of {layers} layers takes {least_us:g} us to an hour"
        raise ProfileError(f"{where}: time_us is {row['time_us']}; {says}")
    return WholeStep(layers, shape, time_us, repeats, _spread(row["spread_us"], where))


def _size(row: Mapping[str, Any], column: str, where: str, least: int = 0, most: int = MOST) -> int:
    size = size_of(row, column, where)
    if not least <= size <= most:
        raise ProfileError(f"{where}: {column} is {row[column]}; it must be {least} to {most:,}")
    return size


def _chunks(cell: str, where: str) -> list[tuple[int, int]]:
    try:
        chunks = [tuple(map(int, word.split("+"))) for word in cell.split()]
        pairs = [(q, kv) for q, kv in chunks]
    except ValueError:
        raise ProfileError(f"{where}: chunks is {cell!r}; it must be as 512+0 128+1024") from None
    if any(not 1 <= q <= MOST or not 0 <= kv <= MOST for q, kv in pairs):
        raise ProfileError(f"{where}: chunks is {cell!r}; each has 1 to {MOST:,} new tokens and 0 cached or more")
    return pairs


def _spread(cell: str, where: str) -> float | None:
    if not cell:
        return None
    try:
        spread_us = float(cell)
    except ValueError:
        raise ProfileError(f"{where}: spread_us is {cell!r}, not a number") from None
    if not 0 <= spread_us < math.inf:
        raise ProfileError(f"{where}: spread_us is {cell}; a spread is 0 or more, or left empty")
    return spread_us
