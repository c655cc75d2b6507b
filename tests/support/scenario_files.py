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
