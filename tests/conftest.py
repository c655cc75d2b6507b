"""What must be set before anything imports triton or torch: kernels are interpreted, on one thread, cached apart."""

from __future__ import annotations

import os
import tempfile

# Triton reads this when a kernel is decorated: a process interprets or compiles (`TRITON_INTERPRET=0 pytest -m gpu`).
os.environ.setdefault("TRITON_INTERPRET", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

_triton_cache = tempfile.TemporaryDirectory(prefix="llmsim-triton-", ignore_cleanup_errors=True)
os.environ["TRITON_CACHE_DIR"] = _triton_cache.name
