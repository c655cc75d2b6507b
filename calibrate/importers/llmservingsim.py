"""LLMServingSim's profile bundles: a folder with `meta.yaml` and one folder a tensor-parallel degree.

Each has `attention.csv` (prefill_chunk, kv_prefill, n_decode, kv_decode, time_us), `dense.csv` (layer, tokens,
time_us), `per_sequence.csv` (layer, sequences, time_us), for some `moe.csv` (tokens, activated_experts, time_us) and
`skew.csv` (unequal contexts: n, pc, kp, kv_mean, kv_big, t_skew_us); any may be gzipped. The times of `skew.csv` are
sums over the measurement iterations: its equal contexts (t_mean_us) take just as many times what `attention.csv` says.
Source: `profiler/perf` in casys-kaist/LLMServingSim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ...policies.core.model_spec import ModelSpec
from ...sim.cost_model.profile import Profile
from ...sim.cost_model.profile_header import ModelShapes, ProfileHeader
from ...sim.cost_model.timings import ProfileError, Timing, csv_rows, size_of, time_of
from .request import ImportRequest

WHAT = "a folder with meta.yaml and tp1, tp2, …"
LAYERS = {
    "embedding": "embedding",
    "layernorm": "norm",
    "qkv_proj": "qkv",
    "qk_norm": "qk_norm",
    "rotary_emb": "rope",
    "o_proj": "o",
    "gate_up_proj": "gate_up",
    "act_fn": "act",
    "down_proj": "down",
    "final_layernorm": "final_norm",
    "lm_head": "lm_head",
    "sampler": "sampler",
}
ATTENTION_COLUMNS = ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode")
MOE_COLUMNS = ("tokens", "activated_experts")
SKEW_COLUMNS = ("pc", "kp", "n", "kv_mean", "kv_big")


def recognises(source: str) -> bool:
    """Whether it is such a folder."""
    return (Path(source) / "meta.yaml").is_file()


def read(request: ImportRequest) -> Profile:
    """The timings of one tensor-parallel degree."""
    meta = _meta(request.path / "meta.yaml")
    model = request.model_or(meta.get("model"))
    folder, tensor_parallel = _degree(request)
    _check_shapes(meta, model, request.path / "meta.yaml")
    repeats = meta.get("measurement_iterations")
    header = ProfileHeader(
        name=f"{request.path.resolve().name}-tp{tensor_parallel}",
        gpu=request.gpu_or(meta.get("gpu")),
        device=str(meta.get("gpu", "not recorded")),
        model=ModelShapes.of(model),
        tensor_parallel=tensor_parallel,
        software=f"vLLM {meta.get('vllm_version')}, CUDA {meta.get('cuda_version')}, {_mode(meta)}",
        measured_at=meta.get("profiled_at"),
        source=f"LLMServingSim profile bundle {request.path.resolve().name}/{folder.name}",
        contained=("kv_write", "router") if model.num_experts else ("kv_write",),
    )
    timings = [timing._replace(repeats=repeats) for timing in _timings(folder, repeats or 1)]
    return Profile(header, timings, request.path)


def _timings(folder: Path, num_iterations: int) -> Iterator[Timing]:
    for where, row in csv_rows(_file(folder, "attention"), (*ATTENTION_COLUMNS, "time_us")):
        sizes = tuple(size_of(row, column, where) for column in ATTENTION_COLUMNS)
        yield Timing("attention", (*sizes, sizes[3]), time_of(row, "time_us", where), where)
    for name, column in (("dense", "tokens"), ("per_sequence", "sequences")):
        for where, row in csv_rows(_file(folder, name), ("layer", column, "time_us")):
            yield Timing(_kernel(row, where), (size_of(row, column, where),), time_of(row, "time_us", where), where)
    if _has(folder, "moe"):
        for where, row in csv_rows(_file(folder, "moe"), (*MOE_COLUMNS, "time_us")):
            shape = tuple(size_of(row, column, where) for column in MOE_COLUMNS)
            yield Timing("moe", shape, time_of(row, "time_us", where), where)
    if _has(folder, "skew"):
        for where, row in csv_rows(_file(folder, "skew"), (*SKEW_COLUMNS, "t_skew_us")):
            shape = tuple(size_of(row, column, where) for column in SKEW_COLUMNS)
            yield Timing("attention", shape, time_of(row, "t_skew_us", where) / num_iterations, where)


def _kernel(row: Mapping[str, str], where: str) -> str:
    if row["layer"] not in LAYERS:
        raise ProfileError(f"{where}: layer '{row['layer']}' is unknown; choose {', '.join(LAYERS)}")
    return LAYERS[row["layer"]]


def _meta(path: Path) -> dict[str, Any]:
    try:
        meta = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ProfileError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(meta, dict):
        raise ProfileError(f"{path}: is not a mapping of keys")
    return {key: str(value) if key in ("profiled_at", "gpu", "model") else value for key, value in meta.items()}


def _mode(meta: Mapping[str, Any]) -> str:
    return "eager" if (meta.get("engine_effective") or {}).get("enforce_eager") else "CUDA graphs"


def _degree(request: ImportRequest) -> tuple[Path, int]:
    """The folder of the degree asked for, or the only one."""
    found = {int(folder.name[2:]): folder for folder in request.path.glob("tp*") if folder.name[2:].isdigit()}
    asked = request.tensor_parallel or (next(iter(found)) if len(found) == 1 else None)
    if asked is None or asked not in found:
        choices = ", ".join(map(str, sorted(found))) or "none"
        raise ProfileError(
            f"{request.path}: has timings for tensor parallelism {choices}; choose with --tensor-parallel"
        )
    return found[asked], asked


def _check_shapes(meta: Mapping[str, Any], model: ModelSpec, file: Path) -> None:
    """What `meta.yaml` says of the last degree that was measured must be that share of the model."""
    sizes = (meta.get("engine_effective") or {}).get("hf_overrides") or {}
    gpus = max(meta.get("tp_degrees") or [1])
    wanted = {
        "num_attention_heads": model.heads_per_gpu(gpus),
        "num_key_value_heads": model.kv_heads_per_gpu(gpus),
        "vocab_size": model.vocab_size // gpus,
    }
    if not model.num_experts:  # else it tells of an MLP that no layer has
        wanted["intermediate_size"] = model.intermediate_size // gpus
    for key, value in wanted.items():
        if key in sizes and sizes[key] != value:
            raise ProfileError(f"{file}: {key} is {sizes[key]}, that of {model.name} over {gpus} GPUs {value}")


def _has(folder: Path, name: str) -> bool:
    return any((folder / f"{name}.csv{end}").is_file() for end in ("", ".gz"))


def _file(folder: Path, name: str) -> Path:
    path = folder / f"{name}.csv"
    return path if path.is_file() else folder / f"{name}.csv.gz"
