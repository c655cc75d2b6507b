"""Every policy on the real engine: all is served, and a fresh core decides the same under the journal of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

import pytest
import torch

from llmsim.kernels.torch_backend import TorchKernels
from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.journal import JournalWriter, read_journal
from llmsim.policies.core.model_spec import ModelSpec
from llmsim.policies.core.records import Status
from llmsim.policies.core.replay import Replay
from llmsim.policies.core.request import Arrival, Output
from llmsim.real_engine.executor import RealExecutor
from llmsim.real_engine.measured_steps import MeasuredSteps
from llmsim.real_engine.model.loading import load_model
from llmsim.real_engine.model.transformer import Transformer
from llmsim.sim.driver import SimDriver
from llmsim.tests.policies.test_every_policy import combinations, prefix_index, spec_of, told
from llmsim.tests.support.linear_estimator import LinearEstimator
from llmsim.tests.support.toy_run import Rows
from llmsim.tests.support.traffic import random_requests, random_stops

SPEC = ModelSpec("two-heads", 1, 32, 48, 2, 1, 16, 64, 512)


def each_once() -> Iterator[dict[str, str]]:
    """Combinations in which each policy is once at least."""
    seen: set[tuple[str, str]] = set()
    for chosen in combinations():
        if chosen.items() - seen:
            seen |= chosen.items()
            yield chosen


class Traffic:
    """Requests with all that a policy may ask for; some stop before they must."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.requests = told(random, random_requests(random, 8))
        self.stops = random_stops(random, self.requests)

    def arrivals(self) -> Iterator[Arrival]:
        for request in self.requests:
            output = Output(self.stops.get(request.id, request.max_tokens))
            yield Arrival(request.arrival_ns, request, output)

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        return ()


@pytest.fixture(scope="module")
def model() -> Transformer:
    device = torch.device("cpu")
    return load_model(SPEC, device=device, dtype=torch.float32, seed=0, kernels=TorchKernels())


@pytest.mark.parametrize("chosen", list(each_once()), ids=lambda chosen: "-".join(chosen.values()))
def test_a_policy_decides_on_the_real_engine_what_it_decides_in_a_replay(
    chosen: dict[str, str], model: Transformer, tmp_path: Path
) -> None:
    specs = {kind: spec_of(kind, name) for kind, name in chosen.items()}
    config = EngineConfig(
        num_blocks=30,
        block_size=4,
        max_num_seqs=4,
        max_num_batched_tokens=40,
        max_model_len=128,
        depth=2,
        prefix_index=prefix_index(chosen["batching"]),
    )
    rows, path = Rows(), tmp_path / "journal.jsonl.gz"
    executor = RealExecutor(model, config, outputs="sampled")
    with JournalWriter(path, config, specs, "test") as journal:
        policies = Policies.of(specs, estimator=journal.hear(LinearEstimator()))
        core = EngineCore(config, policies, tells_grants=True)
        SimDriver(core, MeasuredSteps(executor), Traffic(0), rows, journal=journal, leaps=False).run()
    executor.close()
    assert {record.status for record in rows.requests} == {Status.FINISHED}
    assert len(rows.requests) == 8
    replay = Replay(read_journal(path), str(path))
    assert replay.run() is None
    assert (replay.num_plans, replay.num_finished) == (core.num_steps, 8)
