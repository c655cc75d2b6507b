"""Made-up records: single rows with defaults, and a whole run of a queue that serves one request a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from llmsim.policies.core.records import (
    EventKind,
    EventRecord,
    RequestRecord,
    Status,
    StepKind,
    StepRecord,
)
from llmsim.sim.latencies import Slo
from llmsim.sim.metrics import RunFacts
from llmsim.sim.recorder import Recorder

S = 1_000_000_000
MS = 1_000_000
MEMORY = {
    "weights_bytes": 16_000_000_000,
    "kv_bytes": 2_097_152_000,
    "activations_bytes": 1_500_000_000,
    "buffers_bytes": 500_000_000,
    "budget_bytes": 20_500_000_000,
    "num_blocks": 1001,
}


def step(index: int, start_ns: int, duration_ns: int, **changes: Any) -> StepRecord:
    """A decode step of one request that took one block of 1,000, unless told otherwise."""
    plain = StepRecord(
        step=index,
        start_ns=start_ns,
        duration_ns=duration_ns,
        kind=StepKind.DECODE,
        num_prefill_tokens=0,
        num_decodes=1,
        context_tokens=16,
        num_running=1,
        num_waiting=0,
        free_blocks=999,
        cached_blocks=0,
        kv_tokens=16,
        refused_blocks=0,
        num_evicted=0,
        num_preempted=0,
        num_finished=0,
        num_drafts=0,
        num_accepted=0,
        compute_ns=duration_ns // 10,
        memory_ns=duration_ns // 2,
        host_ns=0,
        extrapolated=False,
    )
    return plain._replace(**changes)


def request(name: str, sent_ns: int, **changes: Any) -> RequestRecord:
    """A finished request: 100 tokens in, 11 out; queue 1 s, TTFT 2 s, a token every 100 ms, E2E 3 s."""
    fields: dict[str, Any] = {
        "request_id": name,
        "tenant": None,
        "session": None,
        "priority": 0,
        "prompt_tokens": 100,
        "intended_ns": sent_ns,
        "sent_ns": sent_ns,
        "admitted_ns": sent_ns + S,
        "first_scheduled_ns": sent_ns + S,
        "first_token_ns": sent_ns + 2 * S,
        "last_token_ns": sent_ns + 3 * S,
        "output_tokens": 11,
        "num_chunks": 1,
        "max_gap_ns": 100 * MS,
        "status": Status.FINISHED,
    }
    return RequestRecord(**(fields | changes))


def refused(name: str, sent_ns: int) -> RequestRecord:
    """A request that never ran."""
    never = ("admitted_ns", "first_scheduled_ns", "first_token_ns", "last_token_ns", "max_gap_ns")
    changes: dict[str, Any] = {"status": Status.REFUSED, "output_tokens": 0, "num_chunks": 0}
    return request(name, sent_ns, **changes, **dict.fromkeys(never))


def facts(**changes: Any) -> RunFacts:
    """Facts of a run with 1,000 usable blocks."""
    plain: dict[str, Any] = {
        "scenario": "made-up",
        "seed": 7,
        "version": "0.1.0",
        "preset": "vllm@0.33",
        "memory": MEMORY,
        "usable_blocks": 1000,
        "slo": Slo(),
    }
    return RunFacts(**(plain | changes))


def record_queue(recorder: Recorder, num_requests: int, load: float, seed: int = 0) -> None:
    """An M/D/1 queue as records, closed: Poisson arrivals, one request a step, 1 s a step."""
    rng = np.random.default_rng(seed)
    arrivals_s = np.cumsum(rng.exponential(1 / load, num_requests))
    index = np.arange(num_requests)
    starts_s = np.maximum.accumulate(arrivals_s - index) + index
    arrivals, starts = (np.rint(times * S).astype(np.int64).tolist() for times in (arrivals_s, starts_s))
    waiting = np.searchsorted(arrivals, starts, side="right") - (index + 1)
    for i, (arrival, start, queued) in enumerate(zip(arrivals, starts, waiting.tolist(), strict=True)):
        recorder.on_step(step(i, start, S, num_waiting=queued, num_finished=1, kind=StepKind.PREFILL))
        end = start + S
        recorder.on_request(
            request(
                f"r{i}",
                arrival,
                admitted_ns=start,
                first_scheduled_ns=start,
                first_token_ns=end,
                last_token_ns=end,
                output_tokens=1,
                max_gap_ns=None,
            )
        )
    recorder.close()


def record_busy_run(recorder: Recorder, num_steps: int = 3000, seed: int = 0) -> None:
    """A run with idle gaps, overlapping steps, preemptions, refusals and drafts' uneven gaps, closed."""
    rng = np.random.default_rng(seed)
    now = 0
    for i in range(num_steps):
        duration = int(rng.integers(5 * MS, 50 * MS))
        running, waiting = int(rng.integers(1, 64)), int(rng.integers(0, 9))
        preempted = int(rng.random() < 0.01)
        recorder.on_step(
            step(
                i,
                now,
                duration,
                num_running=running,
                num_waiting=waiting,
                free_blocks=int(rng.integers(0, 1000)),
                num_preempted=preempted,
                extrapolated=bool(rng.random() < 0.1),
                kind=StepKind.MIXED,
            )
        )
        if preempted:
            recorder.on_event(EventRecord(i, now, EventKind.PREEMPT, f"r{i}", None, 3, "decode"))
        recorder.on_gap(duration, running)
        if i % 10 == 0:
            recorder.on_request(request(f"r{i}", now, cached_tokens=int(rng.integers(0, 100)), tenant="a"))
        now += duration + int(rng.integers(-2 * MS, 4 * MS))
    recorder.on_request(refused("late", now))
    recorder.close()
