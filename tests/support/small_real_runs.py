"""A scenario for the real engine on a CPU: a second, and yet chunks, prefix hits, waiting and preemptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.real_options import Clock, RealOptions
from llmsim.scenarios.real_run import run_for_real
from llmsim.scenarios.real_setup import real_setup

from .scenario_files import write_scenario

SMALL = """
name: small-real
model: ./config.json
hardware: {gpu: h200-sxm}
engine: {max_num_batched_tokens: 64, max_num_seqs: 8, max_model_len: 512, num_gpu_blocks_override: 24}
workload:
  type: agent
  rate: 1000
  requests: 16
  tenants: 2
  repositories: 1
  system_tokens: 32
  tools_tokens: 32
  repository_tokens: 40
  question_tokens: {lognormal: {mean: 20, cv: 0.5, max: 60}}
  output_tokens: {lognormal: {mean: 20, cv: 0.5, max: 60}}
"""

CONFIG = """{"architectures": ["LlamaForCausalLM"], "vocab_size": 300, "hidden_size": 64, "intermediate_size": 96,
"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64,
"max_position_embeddings": 1024}"""


def write_small(folder: Path, text: str = SMALL) -> Path:
    """`folder`/s.yaml, and the model beside it."""
    (folder / "config.json").write_text(CONFIG)
    return write_scenario(folder, text)


def run_small(folder: Path, *overrides: str, clock: Clock = Clock.VIRTUAL, journal: bool = False) -> dict[str, Any]:
    """The summary of a run into `folder`/out; the device is this machine's CPU."""
    scenario = load_scenario(write_small(folder), overrides)
    setup = real_setup(scenario, RealOptions(device="cpu", clock=clock), print)
    return run_for_real(setup, folder / "out", journal=journal, warn=print)
