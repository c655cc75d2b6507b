"""Writes small scenario and trace files for tests."""

from __future__ import annotations

import gzip
from pathlib import Path

MINIMAL = """
name: small
model: tiny
hardware: {gpu: h100-sxm}
workload: {type: independent}
"""


def write_scenario(folder: Path, text: str = MINIMAL) -> Path:
    """`folder`/s.yaml with that text."""
    path = folder / "s.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def write_trace(folder: Path, text: str, packed: bool = False) -> Path:
    """`folder`/trace with that text, gzipped where asked for."""
    path = folder / "trace"
    raw = text.encode()
    path.write_bytes(gzip.compress(raw) if packed else raw)
    return path


BUSY = """
name: busy
model: tiny
hardware: {gpu: a100-80g}
engine: {num_gpu_blocks_override: 400, max_num_seqs: 48, max_num_batched_tokens: 512}
policies:
  chunk_size: {name: fixed, tokens: 192}
workload:
  type: agent
  rate: 150
  requests: 400
  tenants: 3
  repositories: 2
  system_tokens: 100
  tools_tokens: 60
  repository_tokens: 200
  question_tokens: {lognormal: {mean: 80, cv: 1.0, max: 600}}
  output_tokens: {lognormal: {mean: 120, cv: 0.7, max: 400}}
slo: {ttft_s: 0.05, tpot_s: 0.0014, e2e_s: 0.4}
"""
"""Memory is short: requests are preempted, cached blocks are hit and evicted, prompts come in chunks."""
