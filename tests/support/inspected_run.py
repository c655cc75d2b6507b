"""`python -m llmsim.tests.support.inspected_run ARGUMENTS`: `llmsim run ARGUMENTS`, then a look at what is left.

Prints, as JSON, whether the core that the run used is sound and empty, and the most memory that the process held.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from llmsim.cli import main
from llmsim.policies.core.engine import EngineCore
from llmsim.scenarios.assembly import Assembly


def inspected_run(arguments: list[str]) -> dict[str, Any]:
    """Run, check the integrity of pool and index, and count what is still held."""
    cores: list[EngineCore] = []
    make = Assembly.core

    def kept(self: Assembly, *arguments: Any) -> EngineCore:
        cores.append(make(self, *arguments))
        return cores[-1]

    Assembly.core = kept  # type: ignore[method-assign]
    try:
        main(["run", *arguments])
    except SystemExit as end:
        if end.code != 0:
            raise
    finally:
        Assembly.core = make  # type: ignore[method-assign]
    (core,) = cores
    core.check_integrity()
    return {
        "num_blocks": core.config.num_blocks,
        "free_blocks": core.num_free_blocks,
        "num_sequences": len(core.sequences),
        "peak_bytes": peak_bytes(),
    }


def peak_bytes() -> int:
    """The most memory that this process held."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage counts from before exec, when the process was its parent's copy: a large parent would show.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    print(json.dumps(inspected_run(sys.argv[1:])))
