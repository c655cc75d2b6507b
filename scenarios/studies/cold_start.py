"""How long an engine's very first step took the host, told by the requests of the warm-up, which are not scored.

What is compiled and loaded when it is first needed holds up the first step, and whoever comes meanwhile waits: longer
than the warm-up where the engine is busy. The time is that with which the requests of the warm-up are scheduled, and
get their first tokens, when they really did: least absolute deviations, as one request in another step moves both by
a step. Where no time makes them half as large there was no cold start, or the cost model is too far off to tell.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...calibrate.comparison import measured_times
from ...calibrate.runs.measured_run import MeasuredRequest, MeasuredRun
from ..assembly import Assembly
from .measured_replay import replay

SHORTEST_S = 0.02
"""Below it a step's usual host work and the jitter of arrivals are as long."""
MOST_REQUESTS = 24
"""The first ones tell of the first step; more would only take longer."""
MOST_TOKENS = 64
"""Of an output: what comes after it is of no interest here."""
NUM_TRIES, NUM_FINER = 32, 8


def found_cold_start(run: MeasuredRun, assembly: Assembly, warmup_s: float) -> tuple[float, ...]:
    """Host time of the first step; nothing where the run tells of no cold start, or not when steps were planned."""
    first = [request for request in run.requests if request.arrival_s < warmup_s][:MOST_REQUESTS]
    if not first or any(one.scheduled_s is None or one.first_token_s is None for one in first):
        return ()
    assert first[0].first_token_s is not None
    start = replace(run, requests=tuple(_shortened(request) for request in first), series=None)
    cost_model, theirs = assembly.cost_model(), measured_times(start)

    def deviation_s(host_s: float) -> float:
        ours = replay(assembly, start, cost_model=cost_model, cold_start_s=(host_s,)).times()
        pairs = ((ours.scheduled_s, theirs.scheduled_s), (ours.first_token_s, theirs.first_token_s))
        return float(sum(np.mean(np.abs(mine - measured)) for mine, measured in pairs))

    tries = np.linspace(0.0, first[0].first_token_s, NUM_TRIES + 1).tolist()
    tried = {host_s: deviation_s(host_s) for host_s in tries}
    nearest, width = min(tried, key=lambda host_s: tried[host_s]), tries[1]
    finer = nearest + width * np.linspace(-1, 1, 2 * NUM_FINER + 1)
    tried |= {host_s: deviation_s(host_s) for host_s in finer[finer > 0].tolist()}
    best = min(tried, key=lambda host_s: tried[host_s])
    return (round(best, 4),) if best >= SHORTEST_S and tried[best] <= tried[0.0] / 2 else ()


def _shortened(request: MeasuredRequest) -> MeasuredRequest:
    return replace(request, output_tokens=min(request.output_tokens, MOST_TOKENS))
