"""Under any eviction policy an engine serves everyone, and a whole run works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from llmsim.policies import registry
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.records import Status
from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.run import run_into
from llmsim.tests.support.driven_core import DrivenCore
from llmsim.tests.support.scenario_files import BUSY, write_scenario
from llmsim.tests.support.traffic import drive, random_core, random_requests

NAMES = list(registry.policies("eviction"))
ON_A_RADIX_TREE = [
    "engine={preset: sglang, max_total_tokens: 6400, max_running_requests: 48, chunked_prefill_size: 512}"
]


def checking(core: EngineCore) -> Callable[[int], None]:
    return lambda now_ns: core.check_integrity()


@pytest.mark.parametrize("name", NAMES)
def test_under_any_traffic_all_are_served(name: str) -> None:
    num_evicted = 0
    for seed in range(6):
        random = Random(f"{name} {seed}")
        core = random_core(random, specs={"eviction": {"name": name}}, enable_prefix_caching=True, block_size=2)
        driven = DrivenCore(core)
        drive(driven, random_requests(random, 20), random, checking(core), abort_chance=0.02)
        core.check_integrity()
        assert {a.record.status for a in driven.accounts.values()} <= {Status.FINISHED, Status.REFUSED, Status.ABORTED}
        num_evicted += core.kv_cache.pool.num_evicted
    assert num_evicted > 20


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("settings", [[], ON_A_RADIX_TREE], ids=["hashed blocks", "radix tree"])
def test_a_run_with_it_serves_everyone_and_evicts(settings: list[str], name: str, tmp_path: Path) -> None:
    overrides = [*settings, f"policies={{eviction: {{name: {name}}}}}"]
    assembly = assemble(load_scenario(write_scenario(tmp_path, BUSY), overrides))
    summary = run_into(assembly, tmp_path / "out", journal=False, warn=print)
    assert summary["num_requests"]["finished"] == 400
    assert pq.read_table(tmp_path / "out" / "steps.parquet")["num_evicted"].to_numpy().sum() > 100
