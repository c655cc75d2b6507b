"""llmsim: the policies of an LLM inference engine, run in a discrete-event simulator and on a real one.

result = llmsim.run("scenarios/agent.yaml", {"workload.rate": 8})
result.summary["ttft_s"]["p99"], result.requests, result.steps
    frame = llmsim.sweep("scenarios/agent.yaml", {"workload.rate": [4, 8, 12]}, seeds=3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .scenarios.api import Result, run, sweep
    from .scenarios.real_options import RealOptions

__all__ = ["RealOptions", "Result", "__version__", "run", "sweep"]

__version__ = "0.1.0"

_API = ("RealOptions", "Result", "run", "sweep")


def __getattr__(name: str) -> object:
    """Import the API when it is first used: `import llmsim` alone stays quick."""
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .scenarios import api

    return getattr(api, name)
