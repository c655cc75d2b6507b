"""Every policy runs unchanged on the real engine, and the core decides the same again under the journal of the run."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from llmsim.policies import registry
from llmsim.policies.conformance import FEATURES, requirements
from llmsim.policies.core.journal import Replay, read_journal
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.real_options import Clock, RealOptions
from llmsim.scenarios.real_run import run_for_real
from llmsim.scenarios.real_setup import real_setup
from llmsim.tests.policies.test_every_policy import spec_of
from llmsim.tests.support.scenario_files import write_scenario

SHAPES = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 64,
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
}
SMALL = """
name: small
model: config.json
hardware: {gpu: a100-80g}
engine: {num_gpu_blocks_override: 40, max_num_seqs: 12, max_num_batched_tokens: 96, max_model_len: 512}
policies:
  eviction: {name: lru}
workload:
  type: agent
  rate: .inf
  requests: 18
  tenants: 3
  repositories: 2
  system_tokens: 40
  tools_tokens: 20
  repository_tokens: 60
  question_tokens: {lognormal: {mean: 20, cv: 1.0, max: 80}}
  output_tokens: {lognormal: {mean: 12, cv: 0.7, max: 40}}
slo: {ttft_s: 2.0, e2e_s: 5.0}
predictions: {output_length: {sigma: 0.5}}
"""
SETTINGS = {"itl_target": {"itl_s": 0.001}}
KINDS = ("batching", "scheduling", "preemption", "chunk_size", "eviction")


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in registry.policies(kind)])
def test_a_journal_of_the_real_engine_is_decided_the_same_again(tmp_path: Path, kind: str, name: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SHAPES))
    spec = spec_of(kind, name) | SETTINGS.get(name, {})
    given = ", ".join(f"{key}: {value}" for key, value in spec.items())
    needs = requirements(registry.policies(kind)[name])
    paired = [f"policies.{need.replace('.', '.name=')}" for need in needs if need not in FEATURES]
    paired += ["policies.batching.name=prefill_first"] if "radix_tree" in needs else []
    scenario = load_scenario(write_scenario(tmp_path, SMALL), [f"policies.{kind}={{{given}}}", *paired])
    options = RealOptions(device="cpu", clock=Clock.VIRTUAL, device_memory_gib=1.0)
    summary = run_for_real(real_setup(scenario, options, _unheard), tmp_path / "real", journal=True, warn=_unheard)
    assert summary["num_requests"]["finished"] == 18
    replay = Replay(read_journal(tmp_path / "real" / "journal.jsonl.gz"), folders=[tmp_path])
    assert replay.run() is None
    assert replay.num_finished == 18
    assert replay.num_plans >= len(pd.read_parquet(tmp_path / "real" / "steps.parquet")) > 12


def _unheard(_: str) -> None:
    """Warnings are for people."""
