"""A run under each policy gives the same rows with steps skipped and without, and its journal replays."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmsim.policies import registry
from llmsim.policies.conformance import FEATURES, requirements
from llmsim.policies.core.journal import read_journal
from llmsim.policies.core.replay import Replay
from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.run import run_into
from llmsim.tests.policies.test_every_policy import spec_of
from llmsim.tests.support.scenario_files import BUSY, write_scenario

TOLD = ["predictions.output_length.sigma=0.5", "workload.requests=45", "engine.num_gpu_blocks_override=130"]
SECONDS = {"itl_target": {"itl_s": 0.001}}
KINDS = ("scheduling", "preemption", "chunk_size")


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in registry.policies(kind)])
def test_skipping_steps_changes_nothing_and_a_replay_decides_the_same(tmp_path: Path, kind: str, name: str) -> None:
    spec = spec_of(kind, name) | SECONDS.get(name, {})
    given = ", ".join(f"{key}: {value}" for key, value in spec.items())
    needs = requirements(registry.policies(kind)[name])
    paired = [f"policies.{need.replace('.', '.name=')}" for need in needs if need not in FEATURES]
    paired += ["policies.batching.name=prefill_first"] if "radix_tree" in needs else []
    path = write_scenario(
        tmp_path, BUSY.replace("  chunk_size: {name: fixed, tokens: 192}\n", "  eviction: {name: lru}\n")
    )
    scenario = load_scenario(path, [*TOLD, f"policies.{kind}={{{given}}}", *paired])
    for folder, journal in (("skipped", False), ("stepped", True)):
        run_into(assemble(scenario), tmp_path / folder, journal=journal, warn=lambda _: None)
    for table in ("requests", "steps", "events", "itl"):
        once, again = ((tmp_path / folder / f"{table}.parquet").read_bytes() for folder in ("skipped", "stepped"))
        assert once == again, table
    assert Replay(read_journal(tmp_path / "stepped" / "journal.jsonl.gz")).run() is None
