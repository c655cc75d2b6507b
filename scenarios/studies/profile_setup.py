"""What is to be profiled, and the engine set up for it; torch is imported only then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from ...policies.core import specs
from ...policies.core.model_spec import ModelSpec
from ..device import RealDtype
from ..real_options import Kernels
from ..real_setup import real_engine_asked

if TYPE_CHECKING:
    from ...real_engine.profiler.session import ProfileSession

GridName = Literal["small", "full"]


def default_grid(*, is_gpu: bool) -> GridName:
    """What is measured where nothing is asked for."""
    return "full" if is_gpu else "small"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is to be measured, and with what."""

    model: str
    """A name of the catalog, a model's folder, or its config.json."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`, or `auto`: a GPU where there is one."""
    grid: GridName | None = None
    """None: small, on a GPU full."""
    dtype: RealDtype | None = None
    """None: fp32, on a GPU bf16."""
    kernels: Kernels = Kernels.AUTO
    threads: int = 1
    seed: int = 0

    def on(self, device: str, *, is_gpu: bool) -> Wishes:
        """The same with nothing left open, on a device that was found."""
        grid = self.grid or default_grid(is_gpu=is_gpu)
        dtype: RealDtype = self.dtype or ("bf16" if is_gpu else "fp32")
        return replace(self, device=device, grid=grid, dtype=dtype)

    def command(self) -> str:
        """The command line that asks for it."""
        options = f"--device {self.device} --grid {self.grid} --dtype {self.dtype} --kernels {self.kernels}"
        threads = f" --threads {self.threads}" if self.device == "cpu" else ""
        return f"llmsim profile --model {self.model} {options}{threads} --seed {self.seed}"


def session_of(wishes: Wishes, warn: Callable[[str], None]) -> tuple[ProfileSession, Wishes]:
    """The engine, set up, and the wishes with nothing left open; ScenarioError says what is missing."""
    source = _source_of(wishes.model)
    with real_engine_asked():
        from ...real_engine.devices import find_device
        from ...real_engine.profiler.session import ProfileSession

        found = find_device(wishes.device)
        wishes = wishes.on(str(found.device), is_gpu=found.is_gpu)
        backend, dtype = cast(Any, str(wishes.kernels)), str(wishes.dtype)
        session = ProfileSession(
            source, device=wishes.device, dtype=dtype, threads=wishes.threads, backend=backend, warn=warn
        )
        return session, wishes


def _source_of(model: str) -> ModelSpec | Path:
    """A model of the catalog, or a path that is there; UnknownName otherwise."""
    if model not in specs.model_names() and (path := Path(model)).exists():
        return path
    return specs.model(model)
