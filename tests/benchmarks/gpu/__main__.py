"""What only a GPU can tell, in one go of a few minutes; writes a JSON, prints a table.

    python -m llmsim.tests.benchmarks.gpu -o figures.json [--parts errors,ratios,step,greedy,run]
    python -m llmsim.tests.benchmarks.gpu -o figures.json --device cpu        a dry run: small sizes, no bounds on speed

Ends with 0 if every bound holds, with 1 if some figure fell short. A part that raises is noted, and the next one runs.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from llmsim.kernels.choosing import kernels_for
from llmsim.kernels.contract import Kernels
from llmsim.policies.core import specs
from llmsim.tests.benchmarks.gpu.checks import Check
from llmsim.tests.benchmarks.gpu.decode_step import decode_steps
from llmsim.tests.benchmarks.gpu.greedy_tokens import greedy_tokens
from llmsim.tests.benchmarks.gpu.kernel_errors import kernel_errors
from llmsim.tests.benchmarks.gpu.kernel_ratios import Sizes, ratios
from llmsim.tests.benchmarks.gpu.short_run import short_run
from llmsim.tests.benchmarks.gpu.timing import Timer

SMALL = Sizes(
    torch.float32, heads=4, kv_heads=2, head_dim=64, hidden=128, intermediate=256, scale=1 / 64, has_bounds=False
)
Part = Callable[[], Iterator[Check]]


def parts_of(device: torch.device, kernels: Kernels, folder: Path) -> dict[str, Part]:
    """The parts by name, sized for the device."""
    is_gpu = device.type == "cuda"
    timer, sizes = Timer(device), Sizes() if is_gpu else SMALL
    spec = specs.model("llama-3.1-8b" if is_gpu else "tiny")
    dtype, batches = (torch.bfloat16, [1, 32, 128, 256]) if is_gpu else (torch.float32, [4])

    def steps() -> Iterator[Check]:
        copy = timer.copy_bytes_per_s(1 << 30 if is_gpu else 1 << 24)
        yield from decode_steps(spec, kernels, device, dtype, copy, batches=batches)

    return {
        "errors": lambda: kernel_errors(kernels, device, is_small=not is_gpu),
        "ratios": lambda: ratios(kernels, sizes, timer),
        "step": steps,
        "greedy": lambda: greedy_tokens(kernels, device, folder),
        "run": lambda: short_run(device, folder),
    }


def carried_out(
    parts: dict[str, Part], deadline: float, keep: Callable[[list[Check], dict[str, str]], object]
) -> tuple[list[Check], dict[str, str]]:
    """All checks, and what went wrong by part; none is begun after `deadline`. `keep` gets what there is, each time."""
    checks: list[Check] = []
    failures = {}
    for name, part in parts.items():
        begin = time.monotonic()
        if begin > deadline:
            failures[name] = "not begun: out of time"
            continue
        try:
            checks += part()
        except Exception as error:
            traceback.print_exc()
            failures[name] = f"{type(error).__name__}: {error}"
        keep(checks, failures)
        print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return checks, failures


def report(device: torch.device, kernels: Kernels, checks: list[Check], failures: dict[str, str]) -> dict[str, Any]:
    """What is written: where, with what, when, the figures."""
    is_gpu = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if is_gpu else platform.processor() or platform.machine(),
        "is_dry_run": not is_gpu,
        "date": datetime.now(UTC).date().isoformat(),
        "kernels": kernels.name,
        "versions": {name: _version(name) for name in ("torch", "triton", "transformers", "numpy")},
        "cuda": torch.version.cuda,
        "checks": [check.as_json() for check in checks],
        "failures": failures,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def table_of(checks: list[Check]) -> Table:
    """The figures for people."""
    table = Table("part", "what", "value", "must", "aim", "", "note")
    for check in checks:
        table.add_row(*check.row())
    return table


def main() -> int:
    """Read the options, run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--parts", default="errors,ratios,step,greedy,run")
    parser.add_argument("--seconds", type=float, default=270, help="no part is begun after so long")
    options = parser.parse_args()
    begin = time.monotonic()
    device = torch.device(options.device)
    kernels = kernels_for(device, "auto", warn=lambda text: print(text, file=sys.stderr))

    def keep(checks: list[Check], failures: dict[str, str]) -> None:
        options.output.write_text(json.dumps(report(device, kernels, checks, failures), indent=1) + "\n")

    with TemporaryDirectory() as folder:
        parts = parts_of(device, kernels, Path(folder))
        chosen = {name: parts[name] for name in options.parts.split(",")}
        checks, failures = carried_out(chosen, begin + options.seconds, keep)
    keep(checks, failures)
    Console(width=160).print(table_of(checks))
    short = [check for check in checks if check.has_passed is False]
    print(f"{len(checks)} figures, {len(short)} fell short, {len(failures)} parts failed", file=sys.stderr)
    return 1 if short or failures else 0


if __name__ == "__main__":
    sys.exit(main())
