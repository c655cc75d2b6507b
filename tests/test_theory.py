"""A queue that serves one request a step waits as queueing theory says: M/D/1."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
import pytest

from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.workloads.building import build_workload
from llmsim.sim.columns import Floats
from llmsim.sim.driver import SimDriver
from llmsim.sim.executor import SimExecutor
from llmsim.sim.recorder import Recorder
from llmsim.tests.support.tree import ROOT

pytestmark = pytest.mark.slow

NUM_BATCHES = 50
STUDENT_T = 2.010
"""97.5 % point of Student's t with NUM_BATCHES - 1 degrees of freedom."""

LONG = "LLMSIM_LONG_THEORY"
"""Set this to run the longest case too: `LLMSIM_LONG_THEORY=1 pytest tests/test_theory.py` takes minutes."""


class Served(NamedTuple):
    """What the requests of a run experienced, in the order in which they came."""

    wait_ns: Floats
    service_ns: Floats


def serve(rate: float, num_requests: int) -> Served:
    """`scenarios/md1.yaml` at that rate."""
    overrides = [f"workload.rate={rate!r}", f"workload.requests={num_requests}"]
    assembly = assemble(load_scenario(ROOT / "scenarios" / "md1.yaml", overrides))
    recorder = Recorder()
    workload = build_workload(assembly.scenario, print)
    SimDriver(assembly.core(), SimExecutor(assembly.cost_model()), workload, recorder).run()
    recorder.close()
    r = recorder.requests()
    return Served(r.first_scheduled_ns - r.sent_ns, r.last_token_ns - r.first_scheduled_ns)


def service_ns() -> float:
    """What one request costs, D: the same for each."""
    times = np.unique(serve(rate=0.1, num_requests=10).service_ns)
    assert len(times) == 1
    return float(times[0])


def half_width(values: Floats) -> float:
    """Of the 95 % interval of the mean of a sequence whose neighbours are correlated: by means of batches in a row."""
    means = [batch.mean() for batch in np.array_split(values, NUM_BATCHES)]
    return float(STUDENT_T * np.std(means, ddof=1) / np.sqrt(NUM_BATCHES))


@pytest.mark.parametrize(
    ("load", "num_requests"),
    [
        (0.5, 400_000),
        pytest.param(
            0.8, 1_000_000, marks=pytest.mark.skipif(not os.environ.get(LONG), reason=f"takes minutes; set {LONG}=1")
        ),
    ],
)
def test_the_mean_wait_is_that_of_an_m_d_1_queue(load: float, num_requests: int) -> None:
    """Pollaczek and Khinchine: W = rho D / (2 (1 - rho)) where every service takes D."""
    service = service_ns()
    served = serve(load / service * 1e9, num_requests)
    assert len(served.wait_ns) == num_requests
    assert (served.service_ns == service).all()
    theory_ns = load * service / (2 * (1 - load))
    mean_ns, half_ns = float(served.wait_ns.mean()), half_width(served.wait_ns)
    print(f"load {load}: mean wait {mean_ns / 1e6:.4f} ms +- {half_ns / mean_ns:.2%}, theory {theory_ns / 1e6:.4f} ms")
    assert half_ns <= 0.02 * theory_ns
    assert abs(mean_ns - theory_ns) <= half_ns


def test_waits_of_zero_come_as_often_as_theory_says() -> None:
    """Arrivals of a Poisson process see the server idle with probability 1 - rho."""
    service = service_ns()
    for load in (0.2, 0.5):
        waits = serve(load / service * 1e9, 40_000).wait_ns
        assert float((waits == 0).mean()) == pytest.approx(1 - load, abs=0.02)
