"""The summary of a run: a pure function of its records, defined as the benchmarks of vLLM and SGLang do.

Warm-up is cut by the time a request was sent. The measured requests are those sent after it; what they
experienced counts in full. The benchmarks' rates divide by the whole time from the warm-up's end to the last
token. The figures over time (KV use, running, waiting, utilization) and the `windowed` rates cover the time
in which load was on, from the warm-up's end to the last arrival; the drain after that is reported apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from ..policies.core.records import EventRecord, Status
from .columns import NS_PER_S, RequestColumns, StepColumns
from .cost_model.shares import TimeShares
from .fragmentation import FragmentationFold, KVLayout
from .gaps import Gaps
from .intervals import gap_intervals, intervals
from .latencies import Latencies, Slo
from .overload import QueueFold, is_overloaded
from .percentiles import distribution, gap_distribution
from .rates import rates, windowed_rates
from .step_fold import StepFold
from .swap_figures import HostFacts, swap_figures
from .window import Window

MEMORY_KEYS = (
    "weights_bytes",
    "kv_bytes",
    "activations_bytes",
    "buffers_bytes",
    "budget_bytes",
    "num_blocks",
)

DATA_SHEET = "data sheet"
DEVICE = "device"
"""What priced the steps of the real engine: they were measured."""
Summary = dict[str, Any]


class Records(Protocol):
    """The records of one run; a closed `Recorder` is one."""

    def step_chunks(self) -> Iterator[StepColumns]:
        """All steps in order."""
        ...

    def requests(self) -> RequestColumns:
        """All requests, warm-up and unfinished ones included."""
        ...

    def gaps(self) -> Gaps:
        """The pooled gaps of the measured requests."""
        ...

    def swaps(self) -> list[EventRecord]:
        """The events of swapping, in order."""
        ...

    def gap_batches(self) -> Sequence[Gaps]:
        """The same as batches in a row in time."""
        ...


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the summary tells of a run beside its records."""

    scenario: str
    seed: int
    version: str
    """Of llmsim."""
    memory: Mapping[str, int]
    """The keys of `MEMORY_KEYS`, others are left out."""
    usable_blocks: int
    """KV blocks that requests can take; `free_blocks` of a step counts down from here."""
    preset: str | None = None
    """Name and version of the engine reproduced: `vllm@0.33`."""
    model: str = ""
    gpu: str = ""
    tensor_parallel: int = 1
    departures: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Policies other than the preset's own, by kind."""
    warmup_ns: int = 0
    cache: Literal["cold", "warm"] = "cold"
    num_cached_blocks: int = 0
    """In the prefix cache when the run began."""
    closed_loop: bool = False
    """Whether clients wait for their answers; the load then follows from the service, and overload is no question."""
    slo: Slo = field(default_factory=Slo)
    kv_layout: KVLayout = field(default_factory=KVLayout)
    host: HostFacts | None = None
    """Where preempted sequences are swapped to; None: they are recomputed."""
    priced_by: str = DATA_SHEET
    """The measured profile that priced the steps, or the data sheet."""
    step_time_from: Mapping[str, float] = field(default_factory=lambda: TimeShares().summary())
    """Shares of the device time that were measured, interpolated, extrapolated, or taken from the data sheet."""
    real: Mapping[str, object] | None = None
    """Where it ran on the real engine: on which device, with which kernels, and so on."""


def summarize(records: Records, run: RunFacts) -> Summary:
    """The summary as a dict that is strict JSON: None where a figure has no sample, never NaN."""
    everything = records.requests()
    span = _span(everything, run.warmup_ns)
    window = load_window(everything, run.warmup_ns)
    queue = QueueFold(Window(run.warmup_ns, _last_arrival_ns(everything)))
    fragmentation = FragmentationFold(window, run.usable_blocks, run.kv_layout)
    fold = StepFold(window, run.usable_blocks, queue, fragmentation)
    for chunk in records.step_chunks():
        fold.add(chunk)
    fold.close()
    measured = everything.where(everything.sent_ns >= run.warmup_ns)
    finished = measured.where(measured.having(Status.FINISHED))
    latencies = Latencies(finished)
    return {
        "scenario": run.scenario,
        "seed": run.seed,
        "version": run.version,
        **(run.real or {}),
        "preset": run.preset,
        "model": run.model,
        "gpu": run.gpu,
        "priced_by": run.priced_by,
        "tensor_parallel": run.tensor_parallel,
        "departures": {kind: dict(spec) for kind, spec in run.departures.items()},
        "num_requests": {str(status): int(measured.having(status).sum()) for status in _STATUS_ORDER},
        "num_warmup_requests": len(everything.sent_ns) - len(measured.sent_ns),
        **_latency_figures(latencies, records.gaps()),
        "intervals_95": _intervals(finished, latencies, records.gap_batches()),
        **rates(finished, latencies, run.slo, span),
        "windowed": windowed_rates(everything, window),
        "cache": run.cache,
        "cached_blocks_at_start": run.num_cached_blocks,
        **_cache_figures(measured),
        "num_preemptions": int(measured.num_preemptions.sum(dtype=np.int64)),
        **({} if run.host is None else {"swaps": swap_figures(records.swaps(), run.host, span)}),
        "num_steps": fold.num_steps,
        "num_extrapolated_steps": fold.num_extrapolated_steps,
        "step_time_from": dict(run.step_time_from),
        **_figures_over_time(fold, knows_floors=run.real is None),
        "closed_loop": run.closed_loop,
        **_load_figures(everything, queue, run.closed_loop),
        "usable_blocks": run.usable_blocks,
        "memory": {key: int(run.memory[key]) for key in MEMORY_KEYS},
    }


_STATUS_ORDER = (Status.FINISHED, Status.REFUSED, Status.ABORTED, Status.UNFINISHED)


def headline(summary: Summary) -> str:
    """What ran, in a line: model, GPUs, preset, and the policies that are not the preset's own."""
    gpus = f"{summary['tensor_parallel']} x {summary['gpu']}" if summary["tensor_parallel"] > 1 else summary["gpu"]
    parts = [f"{summary['model']} on {gpus}"] if summary["model"] else []
    if is_real(summary):
        parts.append(f"real engine ({summary['kernels']} kernels, {summary['dtype']}, {summary['clock']} clock)")
    elif summary["priced_by"] != DATA_SHEET:
        parts.append(f"profile {summary['priced_by']}")
    parts += [summary["preset"]] if summary["preset"] else []
    for kind, spec in summary["departures"].items():
        parameters = ", ".join(f"{key} {value}" for key, value in spec.items() if key != "name")
        parts.append(f"{kind} {spec['name']}" + (f" ({parameters})" if parameters else ""))
    parts += ["warm cache"] if summary["cache"] == "warm" else []
    return f"{summary['scenario']}: {', '.join(parts)}" if parts else str(summary["scenario"])


def is_real(summary: Summary) -> bool:
    """Whether it is of a run on the real engine."""
    return summary.get("engine") == "real"


def summary_json(summary: Summary) -> str:
    """The summary as text; raises ValueError on a NaN or an infinity."""
    return json.dumps(summary, indent=2, allow_nan=False) + "\n"


def _last_arrival_ns(requests: RequestColumns) -> int:
    return int(np.max(requests.sent_ns, initial=0))


def _span(requests: RequestColumns, warmup_ns: int) -> Window:
    """From the warm-up's end to the last token (or the last arrival, if that came later)."""
    last_token_ns = np.nan_to_num(requests.last_token_ns, nan=0.0)
    return Window(warmup_ns, max(int(np.max(last_token_ns, initial=0)), _last_arrival_ns(requests)))


def load_window(requests: RequestColumns, warmup_ns: int) -> Window:
    """From the warm-up's end to the last arrival: the time in which load was on.

    Where that is less than a twentieth of the measured time (everything was sent at once) the drain *is* the run,
    and the window goes on to the last token.
    """
    span = _span(requests, warmup_ns)
    window = Window(warmup_ns, _last_arrival_ns(requests))
    return window if 20 * window.length_ns >= span.length_ns else span


def _latency_figures(latencies: Latencies, gaps: Gaps) -> Summary:
    tpot = distribution(latencies.tpot_s[latencies.has_tpot])
    return {
        "ttft_s": distribution(latencies.ttft_s),
        "tpot_s": tpot,
        "itl_s": gap_distribution(gaps),
        # A chunk is a token as long as there are no drafts; then a request's mean gap is its TPOT.
        "itl_request_mean_s": dict(tpot),
        "e2e_s": distribution(latencies.e2e_s),
        "queue_s": distribution(latencies.queue_s),
    }


def _intervals(finished: RequestColumns, latencies: Latencies, gaps: Sequence[Gaps]) -> Summary:
    """Of requests' latencies in the order in which they were sent, and of the gaps in that of time."""
    order = np.argsort(finished.sent_ns, kind="stable")
    tpot_s = latencies.tpot_s[order][latencies.has_tpot[order]]
    return {
        "ttft_s": intervals(latencies.ttft_s[order]),
        "tpot_s": intervals(tpot_s),
        "itl_s": gap_intervals(gaps),
        "e2e_s": intervals(latencies.e2e_s[order]),
        "queue_s": intervals(latencies.queue_s[order]),
    }


def _cache_figures(measured: RequestColumns) -> Summary:
    """Hits over tokens looked up, at first admissions."""
    admitted = measured.where(~np.isnan(measured.admitted_ns))
    hit, queried = int(admitted.cached_tokens.sum(dtype=np.int64)), int(admitted.prompt_tokens.sum(dtype=np.int64))
    return {"prefix_hit_rate": hit / queried if queried else None, "cached_tokens": hit}


def _figures_over_time(fold: StepFold, knows_floors: bool) -> Summary:
    """Of a run that nothing priced, the steps' FLOPs and bytes are not known."""
    length_ns = fold.window.length_ns
    work: dict[str, float | None] = {"busy": fold.busy_ns, "flops": fold.compute_ns, "bandwidth": fold.memory_ns}
    if not knows_floors:
        work |= {"flops": None, "bandwidth": None}
    return {
        "kv_usage": fold.used_blocks.summary(length_ns, scale=fold.usable_blocks),
        "fragmentation": fold.fragmentation.summary(),
        "running": fold.running.summary(length_ns),
        "waiting": fold.waiting.summary(length_ns),
        "utilization": {name: ns / length_ns if length_ns and ns is not None else None for name, ns in work.items()},
    }


def _load_figures(requests: RequestColumns, queue: QueueFold, closed_loop: bool) -> Summary:
    arrived = (requests.sent_ns >= queue.window.start_ns) & ~requests.having(Status.REFUSED)
    trend = queue.trend()
    return {
        "overloaded": None if closed_loop else is_overloaded(trend, int(arrived.sum())),
        "queue_slope_per_s": None if closed_loop or trend is None else trend.slope_per_s,
        "drain_s": (_span(requests, 0).end_ns - _last_arrival_ns(requests)) / NS_PER_S,
    }
