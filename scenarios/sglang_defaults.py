"""Fills in what the `engine` section leaves out of SGLang's keys, as SGLang 0.5.23's server does on that GPU and model.

Sources, in SGLang 0.5.23: defaults by GPU memory and `mem_fraction_static` are `handle_gpu_memory_settings` in
`srt/arg_groups/memory_hook.py`, sizes of CUDA graphs `generate_prefill_cuda_graph_batch_sizes` in `cuda_graph_hook.py`,
requests at once `resolve_max_num_reqs` in `srt/mem_cache/kv_cache_configurator.py`, what is refused
`validation_hook.py`, all others `srt/arg_groups/fields/schedule.py` and `memory.py`.

Approximated: a GPU's memory is the catalogue's, a little less than the driver's total that SGLang reads (the share of
an H100 becomes 0.829 instead of 0.830); prefill graphs are counted on every GPU, though only CUDA has them; pipeline
parallelism, speculative decoding, DP attention, LoRA and images are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from .errors import ScenarioError
from .schema_sglang import SglangEngine
from .section import given_or

MAX_PREFILL_TOKENS = 16384

_MIB = 2**20
_GIB = 2**30

_CAPTURED = ((4, 32, 4), (48, 256, 16), (288, 512, 32), (576, 1024, 64), (1280, 4096, 256), (4608, 10**12, 512))
"""Prefill sizes for which a CUDA graph is captured, up to the chunk size: first, last, step."""


@dataclass(frozen=True, slots=True)
class ResolvedSglang:
    """Every knob of the engine, explicit; the meaning of each stands in `schema_sglang.SglangEngine`."""

    preset: str
    """With the version that it reproduces."""
    chunked_prefill_size: int
    """-1 is off, as SGLang has it; `chunk_tokens` is None then."""
    max_prefill_tokens: int
    max_running_requests: int | None
    """None: by the KV pool (`with_kv_tokens`)."""
    context_length: int
    page_size: int
    mem_fraction_static: float
    max_total_tokens: int | None
    """None: as many as the memory holds."""
    schedule_policy: str
    schedule_conservativeness: float
    enable_mixed_chunk: bool
    disable_radix_cache: bool
    disable_overlap_schedule: bool
    radix_eviction_policy: str
    enable_priority_scheduling: bool
    schedule_low_priority_values_first: bool
    prefill_decode_interval: int
    dtype: Literal["auto", "bfloat16", "float16", "float32"]
    quantization: Literal["fp8", "awq", "gptq"] | None
    """None: as the model's file says."""
    kv_cache_dtype: Literal["auto", "bf16", "bfloat16", "fp8_e4m3", "fp8_e5m2"]
    """`auto` is the model's own."""

    @property
    def chunk_tokens(self) -> int | None:
        """Prefill tokens of a step; None where prompts are computed whole."""
        return self.chunked_prefill_size if self.chunked_prefill_size > 0 else None

    def with_kv_tokens(self, kv_tokens: int) -> ResolvedSglang:
        """The same with the requests at once that a pool of so many tokens allows: at most half its tokens.

        By default 2,048 to 4,096, by how often the longest request fits.
        """
        asked = self.max_running_requests
        if asked is None:
            asked = max(min(int(kv_tokens / self.context_length * 512), 4096), 2048)
        return replace(self, max_running_requests=min(asked, kv_tokens // 2))


def resolve_sglang(
    engine: SglangEngine,
    gpu_name: str,
    gpu_memory_bytes: int,
    tensor_parallel: int,
    model_max_len: int,
    file: Path | None = None,
) -> ResolvedSglang:
    """The engine with SGLang's defaults in place of what is left out.

    Raises ScenarioError (naming `file`) where SGLang would refuse to start: a context longer than the model's, or
    chunks that are no whole pages.
    """
    chunk = given_or(engine.chunked_prefill_size, _default_chunk(gpu_memory_bytes))
    resolved = ResolvedSglang(
        preset="sglang@0.5.23",
        chunked_prefill_size=chunk,
        max_prefill_tokens=given_or(engine.max_prefill_tokens, MAX_PREFILL_TOKENS),
        max_running_requests=engine.max_running_requests,
        context_length=given_or(engine.context_length, model_max_len),
        page_size=given_or(engine.page_size, _default_page(gpu_name)),
        mem_fraction_static=given_or(
            engine.mem_fraction_static, _share(engine, chunk, gpu_memory_bytes, tensor_parallel)
        ),
        max_total_tokens=engine.max_total_tokens,
        schedule_policy=given_or(engine.schedule_policy, "fcfs"),
        schedule_conservativeness=given_or(engine.schedule_conservativeness, 1.0),
        enable_mixed_chunk=given_or(engine.enable_mixed_chunk, False),
        disable_radix_cache=given_or(engine.disable_radix_cache, False),
        disable_overlap_schedule=given_or(engine.disable_overlap_schedule, False),
        radix_eviction_policy=given_or(engine.radix_eviction_policy, "lru"),
        enable_priority_scheduling=given_or(engine.enable_priority_scheduling, False),
        schedule_low_priority_values_first=given_or(engine.schedule_low_priority_values_first, False),
        prefill_decode_interval=given_or(engine.prefill_decode_interval, 0),
        dtype=given_or(engine.dtype, "auto"),
        quantization=engine.quantization,
        kv_cache_dtype=given_or(engine.kv_cache_dtype, "auto"),
    )
    _check(resolved, gpu_memory_bytes, model_max_len, file)
    return resolved


def check_policies(engine: ResolvedSglang, file: Path | None = None) -> None:
    """Raise ScenarioError where SGLang would refuse the order of its queue."""
    if engine.enable_priority_scheduling and engine.schedule_policy not in ("fcfs", "lof"):
        message = f"true goes with the schedule policies fcfs and lof, not '{engine.schedule_policy}'"
        raise ScenarioError(file, "engine.enable_priority_scheduling", message)
    if engine.disable_radix_cache and engine.schedule_policy == "shortest-prefill-first":
        message = "true does not go with the schedule policy 'shortest-prefill-first', which looks at the radix tree"
        raise ScenarioError(file, "engine.disable_radix_cache", message)


def _default_chunk(gpu_memory_bytes: int) -> int:
    tiers = ((20, 2048), (60, 4096), (160, 8192))
    return next((tokens for gib, tokens in tiers if gpu_memory_bytes < gib * _GIB), 16384)


def _default_page(gpu_name: str) -> int:
    """1; on a B200, whose default attention kernel (trtllm_mha) wants pages, 64."""
    return 64 if "b200" in gpu_name.lower() else 1


def _largest_decode_graph(gpu_memory_bytes: int, tensor_parallel: int) -> int:
    """The largest decode batch for which a CUDA graph is captured."""
    if gpu_memory_bytes >= 160 * _GIB:
        return 512
    few, many = next(
        sizes
        for gib, sizes in ((20, (8, 8)), (35, (48, 160)), (60, (32, 160)), (160, (256, 512)))
        if gpu_memory_bytes < gib * _GIB
    )
    return few if tensor_parallel < 4 else many


def _num_prefill_graphs(chunk: int, max_total_tokens: int | None) -> int:
    largest = min(chunk, max_total_tokens or chunk)
    return sum(len(range(first, min(last, largest) + 1, step)) for first, last, step in _CAPTURED)


def _share(engine: SglangEngine, chunk: int, gpu_memory_bytes: int, tensor_parallel: int) -> float:
    """What is left of the GPU's memory once activations and CUDA graphs are set aside, by rules of thumb in MiB."""
    decode_graph = _largest_decode_graph(gpu_memory_bytes, tensor_parallel)
    if engine.max_running_requests is not None:
        decode_graph = min(decode_graph, engine.max_running_requests)
    step_tokens = chunk if chunk > 0 else given_or(engine.max_prefill_tokens, MAX_PREFILL_TOKENS)
    activations = 512 + 1.5 * max(step_tokens, 2048)
    graphs = 2 * decode_graph + 8 * _num_prefill_graphs(chunk, engine.max_total_tokens)
    set_aside = activations + graphs + tensor_parallel / 8 * 1024
    if gpu_memory_bytes > 60 * _GIB:
        set_aside = max(set_aside, 10 * 1024)
    memory = gpu_memory_bytes / _MIB
    return round((memory - set_aside) / memory, 3)


def _check(engine: ResolvedSglang, gpu_memory_bytes: int, model_max_len: int, file: Path | None) -> None:
    if engine.mem_fraction_static <= 0:
        message = f"SGLang would leave nothing of {gpu_memory_bytes / _GIB:.1f} GiB to weights and KV; give a value"
        raise ScenarioError(file, "engine.mem_fraction_static", message)
    if engine.context_length > model_max_len:
        message = f"{engine.context_length} is out of range: the model reaches {model_max_len}"
        raise ScenarioError(file, "engine.context_length", message)
    if engine.chunk_tokens and engine.chunk_tokens % engine.page_size:
        message = f"{engine.chunk_tokens} is out of range: must be a multiple of page_size, {engine.page_size}"
        raise ScenarioError(file, "engine.chunked_prefill_size", message)
    if engine.max_total_tokens is not None and engine.max_total_tokens < engine.page_size:
        message = f"{engine.max_total_tokens} is out of range: must be at least a page, {engine.page_size}"
        raise ScenarioError(file, "engine.max_total_tokens", message)
    if engine.max_total_tokens == 1:
        message = "1 is out of range: must be at least 2, twice the requests that may run"
        raise ScenarioError(file, "engine.max_total_tokens", message)
