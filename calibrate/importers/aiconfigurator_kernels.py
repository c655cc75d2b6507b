"""From aiconfigurator-core's tables to the timings of one model's kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...policies.core.model_spec import ACTIVATION_BYTES, ModelSpec
from ...sim.cost_model.timings import ProfileError, Timing, check_columns, time_of
from .size_interpolation import Interpolated, between, gemm_between

US_PER_MS = 1e3
LARGEST_TOKENS = 1 << 15

GEMM_COLUMNS = ("gemm_dtype", "m", "n", "k", "latency", "device")
ATTENTION_COLUMNS = (
    *("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim"),
    *("attn_dtype", "kv_cache_dtype", "step", "latency"),
)
ALL_REDUCE_COLUMNS = ("num_gpus", "message_size", "latency", "kernel_source")
Rows = list[dict[str, Any]]


class Tables:
    """The rows that a model's kernels need."""

    def __init__(self, paths: Mapping[str, Path], model: ModelSpec, tensor_parallel: int) -> None:
        self.paths = paths
        self.model = model
        self.tensor_parallel = tensor_parallel
        gemm = _rows(paths["gemm"], GEMM_COLUMNS, gemm_dtype="bfloat16")
        self.device = str(gemm[0]["device"])
        self.gemm: dict[tuple[int, int], dict[int, float]] = {}
        for row in gemm:
            self.gemm.setdefault((row["n"], row["k"]), {})[row["m"]] = _us(row)

    def attention(self, name: str) -> Rows:
        """Attention with the model's heads on each GPU, in bf16, without a window."""
        model, gpus = self.model, self.tensor_parallel
        chosen = {
            "num_heads": model.heads_per_gpu(gpus),
            "num_key_value_heads": model.kv_heads_per_gpu(gpus),
            "head_dim": model.head_dim,
            "attn_dtype": "bfloat16",
            "kv_cache_dtype": "bfloat16",
        }
        return _rows(self.paths[name], ATTENTION_COLUMNS, **chosen, window_size=0)

    def all_reduce(self) -> Rows:
        """All-reduces over that many GPUs, as in a CUDA graph where both were measured."""
        rows = _rows(self.paths["all_reduce"], ALL_REDUCE_COLUMNS, num_gpus=self.tensor_parallel)
        return [row for row in rows if "graph" in str(row["kernel_source"])] or rows


def kernel_timings(tables: Tables) -> Iterator[Timing]:
    """All that the tables tell of the model's kernels."""
    yield from _gemms(tables)
    decodes = tables.attention("generation")
    for row in decodes:
        context = row["step"] + 1
        yield Timing("attention", (0, 0, row["batch_size"], context, context), _us(row), row["where"])
    alone = {row["step"] + 1: _us(row) for row in decodes if row["batch_size"] == 1}
    yield from _prefills(tables, alone)
    if tables.tensor_parallel > 1:
        yield from _all_reduces(tables)


def _gemms(tables: Tables) -> Iterator[Timing]:
    model, gpus, where = tables.model, tables.tensor_parallel, str(tables.paths["gemm"])
    intermediate, heads = model.intermediate_size // gpus, model.heads_per_gpu(gpus) * model.head_dim
    sizes = {
        "qkv": (model.qkv_width(gpus), model.hidden_size),
        "o": (model.hidden_size, heads),
        "gate_up": (2 * intermediate, model.hidden_size),
        "down": (model.hidden_size, intermediate),
        "lm_head": (model.vocab_per_gpu(gpus), model.hidden_size),
    }
    for name, (n, k) in sizes.items():
        for m, (us, exact) in sorted(gemm_between(tables.gemm, n, k).items()):
            yield Timing(name, (m,), us, where, repeats=None if exact else 0)


def _prefills(tables: Tables, decodes: Mapping[int, float]) -> Iterator[Timing]:
    """Whole prompts as measured, one at a time, and chunks behind cached tokens as differences of two of them.

    A prompt of kv + q tokens does the work of one of kv tokens and of a chunk of q behind them. Where q is small that
    hides what is not work: such a chunk takes no less than q tokens alone do, nor than one decode that reads as much.
    """
    prompts = [row for row in tables.attention("context") if row["batch_size"] == 1]
    whole = {row["isl"]: _us(row) for row in prompts}
    longest = max(whole)
    for row in prompts:
        q, us, where = row["isl"], _us(row), row["where"]
        yield Timing("attention", (q, 0, 0, 0, 0), us, where)
        for kv in sorted(whole):
            if q + kv <= longest:
                least = max(us, between(decodes, q + kv).value)
                chunk = _prompt(whole, q + kv) - whole[kv]
                yield Timing("attention", (q, kv, 0, 0, 0), max(least, chunk), where, repeats=0)


def _prompt(whole: Mapping[int, float], length: int) -> float:
    """Attention of a whole prompt between two lengths, where its time over the square of the length is linear.

    Short ones take as long as a launch does, whatever their length: time itself, a convex curve, is below its chord.
    """
    by_square = between({x: us / x**2 for x, us in whole.items()}, length).value * length**2
    return min(by_square, between(whole, length).value)


def _all_reduces(tables: Tables) -> Iterator[Timing]:
    token_bytes, where = tables.model.hidden_size * ACTIVATION_BYTES, str(tables.paths["all_reduce"])
    times = {row["message_size"]: _us(row) for row in tables.all_reduce()}
    tokens = 1
    while tokens <= LARGEST_TOKENS and tokens * token_bytes <= max(times):
        us: Interpolated = between(times, tokens * token_bytes)
        yield Timing("all_reduce", (tokens,), us.value, where, repeats=None if us.exact else 0)
        tokens *= 2


def _rows(path: Path, columns: tuple[str, ...], **chosen: object) -> Rows:
    """The rows with these values; a column that the table lacks does not choose."""
    table = pq.read_table(path)
    table = table.append_column("row", pa.array(range(1, table.num_rows + 1)))
    check_columns(path, table.column_names, columns)
    for name, value in chosen.items():
        if name in table.column_names:
            table = table.filter(pc.equal(table[name], value))
    if not table.num_rows:
        asked = ", ".join(f"{name} {value}" for name, value in chosen.items())
        raise ProfileError(f"{path.name}: has no row with {asked}")
    return [{**row, "where": f"{path}: row {row['row']}"} for row in table.to_pylist()]


def _us(row: Mapping[str, Any]) -> float:
    """A row's latency; ProfileError where it is not above zero."""
    return time_of(row, "latency", row["where"]) * US_PER_MS
