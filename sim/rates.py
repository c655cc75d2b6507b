"""Requests and tokens a second: over the whole run as benchmarks count, and under load."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..policies.core.records import Status
from .columns import NS_PER_S, RequestColumns
from .latencies import Latencies, Slo
from .window import Window


def _per_second(amount: float, window: Window) -> float | None:
    return amount / (window.length_ns / NS_PER_S) if window.length_ns else None


def rates(finished: RequestColumns, latencies: Latencies, slo: Slo, span: Window) -> dict[str, Any]:
    """As `vllm bench serve` counts: finished requests only, over the whole time."""
    output, prompt = int(finished.output_tokens.sum(dtype=np.int64)), int(finished.prompt_tokens.sum(dtype=np.int64))
    good = None if slo.is_empty() else _per_second(int(latencies.meets(slo).sum()), span)
    return {
        "duration_s": span.length_ns / NS_PER_S,
        "requests_per_s": _per_second(len(finished.sent_ns), span),
        "output_tokens_per_s": _per_second(output, span),
        "total_tokens_per_s": _per_second(output + prompt, span),
        "goodput_rps": good,
        "mean_concurrency": _per_second(float(latencies.e2e_s.sum()), span),
    }


def windowed_rates(requests: RequestColumns, window: Window) -> dict[str, Any]:
    """Requests that finished in the window, and tokens put out in it, whenever their requests were sent.

    A request's tokens count as evenly spread from its first to its last.
    """
    done = requests.where(requests.having(Status.FINISHED))
    first, last = done.first_token_ns, done.last_token_ns
    inside = np.minimum(last, window.end_ns) - np.maximum(first, window.start_ns)
    share = np.clip(inside / np.maximum(last - first, 1.0), 0.0, 1.0)
    starts = (first >= window.start_ns) & (first <= window.end_ns)
    ends = (last >= window.start_ns) & (last <= window.end_ns)
    tokens = float(np.sum(starts + (done.output_tokens - 1) * share))
    return {
        "start_s": window.start_ns / NS_PER_S,
        "end_s": window.end_ns / NS_PER_S,
        "requests_per_s": _per_second(int(ends.sum()), window),
        "output_tokens_per_s": _per_second(tokens, window),
    }
