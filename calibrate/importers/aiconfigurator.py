"""The measured kernels in the installed package `aiconfigurator-core` (NVIDIA, Apache-2.0), filtered to a model.

A source is `aiconfigurator:SYSTEM[/BACKEND[/VERSION]]`, `aiconfigurator:h100_sxm/vllm` say. The package holds GEMMs by
(m, n, k), attention of whole prompts and of decodes, and all-reduces by bytes; latencies are in ms. Sizes that were
not measured are derived: a GEMM from its neighbours' shares of the roofline, a chunk behind cached tokens as the
difference of two whole prompts. Norms, activations and sampling are not in it: the data sheet prices them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from ...policies.core.model_spec import ModelSpec
from ...sim.cost_model.profile import Profile
from ...sim.cost_model.profile_header import ModelShapes, ProfileHeader
from ...sim.cost_model.timings import ProfileError, Timing
from .aiconfigurator_kernels import Tables, kernel_timings
from .request import ImportRequest

WHAT = "aiconfigurator:SYSTEM[/BACKEND[/VERSION]] with --model"
PREFIX = "aiconfigurator:"
PACKAGE = "aiconfigurator_core"
GPUS = {
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "a100_sxm": "a100-80g",
    "l40s": "l40s",
    "h100_pcie": "h100-pcie",
    "b200_sxm": "b200",
    "l4": "l4",
    "rtx_pro_6000_server": "rtx-pro-6000",
}
"""The catalog's names of the package's systems; others need --gpu."""
FILES = {
    "gemm": "gemm_perf",
    "context": "context_attention_perf",
    "generation": "generation_attention_perf",
    "all_reduce": "custom_allreduce_perf",
}
FAMILIES = {"gemm": "gemm", "context": "attention", "generation": "attention", "all_reduce": "comm"}


def recognises(source: str) -> bool:
    """Whether it begins with `aiconfigurator:`."""
    return source.startswith(PREFIX)


def read(request: ImportRequest) -> Profile:
    """The timings of a model's kernels on a system; the newest of a version's tables where none is named."""
    system, backend, version = _parts(request.source)
    root = _data_folder() / system
    if not root.is_dir():
        known = ", ".join(sorted(folder.name for folder in _data_folder().iterdir() if folder.is_dir()))
        raise ProfileError(f"{request.source}: system '{system}' is unknown; choose {known}")
    model, tensor_parallel = _dense(request.model_or(None), request), request.tensor_parallel or 1
    wanted = [name for name in FILES if name != "all_reduce" or tensor_parallel > 1]
    paths = {name: _newest(root, FAMILIES[name], backend, version, FILES[name]) for name in wanted}
    tables = Tables(paths, model, tensor_parallel)
    software = ", ".join(sorted({f"{backend} {path.parent.name}" for path in paths.values()}))
    header = ProfileHeader(
        name=f"{system}-{model.name}-tp{tensor_parallel}",
        gpu=request.gpu_or(GPUS.get(system)),
        device=tables.device,
        model=ModelShapes.of(model),
        tensor_parallel=tensor_parallel,
        software=software,
        source=f"aiconfigurator-core, systems/data/{system}",
    )
    return Profile(header, list(_relative(kernel_timings(tables), _data_folder())), Path(request.source))


def _relative(timings: Iterator[Timing], folder: Path) -> Iterator[Timing]:
    for timing in timings:
        yield timing._replace(where=timing.where.replace(f"{folder}/", ""))


def _dense(model: ModelSpec, request: ImportRequest) -> ModelSpec:
    if model.dtype != "bf16":
        raise ProfileError(f"{request.source}: is read for bf16 weights, not for {model.dtype}")
    return model


def _parts(source: str) -> tuple[str, str, str | None]:
    system, *rest = source.removeprefix(PREFIX).split("/")
    if len(rest) > 2:
        raise ProfileError(f"{source}: is to be {WHAT.partition(' ')[0]}")
    return system, rest[0] if rest else "vllm", rest[1] if len(rest) > 1 else None


def _data_folder() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ProfileError("aiconfigurator-core is not installed; pip install 'llmsim[aiconfigurator]'")
    return Path(next(iter(spec.submodule_search_locations))) / "systems" / "data"


def _newest(root: Path, family: str, backend: str, version: str | None, name: str) -> Path:
    """The newest version's table, or that of the version asked for."""
    paths = list((root / family / backend).glob(f"{version or '*'}/{name}.parquet"))
    if not paths:
        found = sorted(path.name for path in (root / family).glob("*"))
        asked = f"{backend} {version}" if version else backend
        raise ProfileError(f"{root.name}: has no {name} of {asked}; its {family} is of {', '.join(found) or 'nothing'}")
    return max(paths, key=lambda path: [int(number) for number in re.findall(r"\d+", path.parent.name)])
