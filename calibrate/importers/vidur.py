"""Vidur's profiling CSVs: a folder with `attention.csv`, `mlp.csv` and, for several GPUs, `all_reduce.csv`.

Times are medians in ms, `time_stats.NAME.median`. `mlp.csv` has a row a number of tokens, `attention.csv` a row a batch
of prefill chunks or of decodes, `all_reduce.csv` a row a size in bytes. lm_head, sampler and the last norm are not in
them: the data sheet prices those. Source: microsoft/vidur, `data/profiling`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...policies.core.model_spec import ACTIVATION_BYTES, ModelSpec
from ...sim.cost_model.profile import Profile
from ...sim.cost_model.profile_header import ModelShapes, ProfileHeader
from ...sim.cost_model.timings import ProfileError, Timing, csv_rows, size_of, time_of
from .request import ImportRequest

WHAT = "a folder with attention.csv and mlp.csv; with --model, --gpu"
US_PER_MS = 1e3
LAYERS = {
    "embedding": ("emb",),
    "qkv": ("attn_pre_proj",),
    "rope": ("attn_rope",),
    "o": ("attn_post_proj",),
    "gate_up": ("mlp_up_proj",),
    "act": ("mlp_act",),
    "down": ("mlp_down_proj",),
}
NORMS = ("input_layernorm", "post_attention_layernorm", "add")
"""Two norms and a residual addition a layer: half of them together is one of our norms, which add the residual."""
MLP_SIZES = ("n_head", "n_kv_head", "n_embd", "n_expanded_embd", "vocab_size", "num_tensor_parallel_workers")
ATTENTION_SIZES = ("n_q_head", "n_kv_head", "n_embd", "num_tensor_parallel_workers")
SHAPE = ("batch_size", "prefill_chunk_size", "kv_cache_size")


def recognises(source: str) -> bool:
    """Whether it is such a folder."""
    return (Path(source) / "attention.csv").is_file() and (Path(source) / "mlp.csv").is_file()


def read(request: ImportRequest) -> Profile:
    """The timings of one tensor-parallel degree."""
    model, tensor_parallel = request.model_or(None), request.tensor_parallel or 1
    timings = [*_mlp(request.path / "mlp.csv", model, tensor_parallel)]
    timings += _attention(request.path / "attention.csv", model, tensor_parallel)
    if tensor_parallel > 1:
        timings += _all_reduce(request.path / "all_reduce.csv", model, tensor_parallel)
    if not timings:
        raise ProfileError(f"{request.path}: has no row of tensor parallelism {tensor_parallel}")
    gpu = request.gpu_or(None)
    header = ProfileHeader(
        name=f"{request.path.resolve().name}-tp{tensor_parallel}",
        gpu=gpu,
        device=gpu,
        model=ModelShapes.of(model),
        tensor_parallel=tensor_parallel,
        software="Vidur's profiler",
        source=f"Vidur profiling CSVs in {request.path.resolve().name}",
        contained=("kv_write",),
    )
    return Profile(header, timings, request.path)


def _mlp(path: Path, model: ModelSpec, tensor_parallel: int) -> Iterator[Timing]:
    parts = [*LAYERS.items(), ("norm", NORMS)]
    columns = [_median(name) for _, names in parts for name in names]
    sizes = {
        **{"n_head": model.num_heads, "n_kv_head": model.num_kv_heads, "n_embd": model.hidden_size},
        **{"n_expanded_embd": model.intermediate_size, "vocab_size": model.vocab_size},
    }
    for where, row in csv_rows(path, (*MLP_SIZES, "num_tokens", *columns)):
        if _is_of(row, sizes, model, tensor_parallel, where):
            tokens = size_of(row, "num_tokens", where)
            for kernel, names in parts:
                ms = sum(time_of(row, _median(name), where) for name in names)
                yield Timing(kernel, (tokens,), ms * US_PER_MS / (2 if kernel == "norm" else 1), where)


def _attention(path: Path, model: ModelSpec, tensor_parallel: int) -> Iterator[Timing]:
    """The KV write is part of attention; a batch of prefill chunks counts as one of their sum."""
    sizes = {"n_q_head": model.num_heads, "n_kv_head": model.num_kv_heads, "n_embd": model.hidden_size}
    columns = [_median(name) for name in ("attn_prefill", "attn_decode", "attn_kv_cache_save")]
    for where, row in csv_rows(path, (*ATTENTION_SIZES, *SHAPE, "is_prefill", *columns)):
        if _is_of(row, sizes, model, tensor_parallel, where):
            batch, q, kv = (size_of(row, column, where) for column in SHAPE)
            is_prefill = row["is_prefill"].lower() == "true"
            ms = time_of(row, columns[0 if is_prefill else 1], where) + time_of(row, columns[2], where)
            shape = (batch * q, batch * kv, 0, 0, 0) if is_prefill else (0, 0, batch, kv + 1, kv + 1)
            yield Timing("attention", shape, ms * US_PER_MS, where)


def _all_reduce(path: Path, model: ModelSpec, tensor_parallel: int) -> Iterator[Timing]:
    token_bytes = model.hidden_size * ACTIVATION_BYTES
    for where, row in csv_rows(path, ("num_workers", "size", _median("all_reduce"))):
        tokens, rest = divmod(size_of(row, "size", where), token_bytes)
        if size_of(row, "num_workers", where) == tensor_parallel and tokens and not rest:
            yield Timing("all_reduce", (tokens,), time_of(row, _median("all_reduce"), where) * US_PER_MS, where)


def _median(name: str) -> str:
    return f"time_stats.{name}.median"


def _is_of(
    row: Mapping[str, str], sizes: Mapping[str, int], model: ModelSpec, tensor_parallel: int, where: str
) -> bool:
    """Whether a row is of that many GPUs; ProfileError where it is another model's."""
    for column, size in sizes.items():
        if size_of(row, column, where) != size:
            raise ProfileError(f"{where}: {column} is {row[column]}, that of {model.name} {size}")
    return size_of(row, "num_tensor_parallel_workers", where) == tensor_parallel
