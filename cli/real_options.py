"""The options of `llmsim run` and `llmsim generate` that concern the real engine."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..policies.core.memory import DoesNotFit
from ..scenarios.errors import ScenarioError
from ..scenarios.real_options import Clock, Dtype, Kernels, RealOptions
from ..scenarios.tables import memory_table
from .speech import people


class Engine(StrEnum):
    """What carries a run out."""

    SIM = "sim"
    REAL = "real"


DeviceOption = Annotated[
    str | None,
    typer.Option("--device", help="cpu, cuda, cuda:1 …; a GPU where there is one if left out.", show_default=False),
]
KernelsOption = Annotated[
    Kernels | None,
    typer.Option("--kernels", help="triton's on a GPU, else torch's, if left out.", show_default=False),
]
DtypeOption = Annotated[
    Dtype | None,
    typer.Option("--dtype", help="The scenario's, or fp32 on a CPU, bf16 on a GPU, if left out.", show_default=False),
]
MemoryOption = Annotated[
    float | None,
    typer.Option(
        "--device-memory",
        min=0.01,
        max=1 << 20,
        metavar="GIB",
        help="That it may use; a GPU's whole, or on a CPU half of what is free, at most 4, if left out.",
        show_default=False,
    ),
]
ClockOption = Annotated[
    Clock | None,
    typer.Option(
        "--clock", help="wall: requests come in real time; virtual: idle time passes at once.", show_default=False
    ),
]
ModelPathOption = Annotated[
    Path | None,
    typer.Option("--model-path", help="A folder with config.json and safetensors.", show_default=False),
]


def real_options(
    engine: Engine,
    device: str | None,
    kernels: Kernels | None,
    clock: Clock | None,
    dtype: Dtype | None,
    model_path: Path | None,
    device_memory: float | None,
) -> RealOptions | None:
    """What was asked of the real engine; None: the simulator, with which none of it may be given."""
    given = {
        "--device": device,
        "--kernels": kernels,
        "--clock": clock,
        "--dtype": dtype,
        "--model-path": model_path,
        "--device-memory": device_memory,
    }
    if engine is Engine.REAL:
        return RealOptions(
            device or "auto",
            kernels or Kernels.AUTO,
            clock or Clock.WALL,
            dtype or Dtype.AUTO,
            model_path,
            device_memory,
        )
    for option, value in given.items():
        if value is not None:
            raise ScenarioError(None, option, "goes with --engine real")
    return None


def show_shortage(error: ScenarioError) -> None:
    """Where a model does not fit its device: the table of what would be needed, before the line that says so."""
    if isinstance(error.__cause__, DoesNotFit):
        people.print(memory_table(asdict(error.__cause__.budget)))
