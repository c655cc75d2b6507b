"""A model and an executor for it, on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, cast

import torch

from ..kernels.choosing import Backend, kernels_for
from ..policies.core.config import EngineConfig
from ..policies.core.model_spec import ModelSpec
from .contract import first_line
from .devices import DTYPES, DeviceError, FoundDevice
from .executor import Outputs, RealExecutor
from .model.errors import ModelError
from .model.loading import config_of, load_model
from .streams import ThreadStream, host_clock


class BuiltEngine(NamedTuple):
    """What carries out the steps, and by which kernels."""

    executor: RealExecutor
    kernels: str


def build_engine(
    source: Path | ModelSpec,
    config: EngineConfig,
    found: FoundDevice,
    *,
    dtype: str,
    backend: str,
    outputs: Outputs,
    seed: int,
    random: bool,
    warn: Callable[[str], None],
    stop_tokens: Iterable[int] = (),
    is_virtual: bool = False,
) -> BuiltEngine:
    """The executor of a core with this configuration, on kernels of `backend` (a `Backend`).

    `random`: with made-up weights, whatever there is. `is_virtual`: time is, so a CPU's steps may be timed by their
    thread's (`host_clock`). Raises ModelError, KernelsUnavailable, and DeviceError where the device has not the memory,
    or cannot run it.
    """
    shapes = {"head_dim": config_of(source).spec.head_dim, "block_size": config.block_size}
    kernels = kernels_for(found.device, cast(Backend, backend), warn, **shapes)
    try:
        model = load_model(source, device=found.device, dtype=DTYPES[dtype], seed=seed, kernels=kernels, random=random)
        stream = ThreadStream(host_clock()) if is_virtual and found.device.type == "cpu" else None
        executor = RealExecutor(model, config, outputs=outputs, stop_tokens=stop_tokens, stream=stream)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise DeviceError(f"{found.name} has not the memory: {first_line(error)}") from None
    except (AssertionError, ModelError):
        raise
    except Exception as error:  # A kernel that does not compile for this GPU, say: Triton's are bare Exceptions.
        raise DeviceError(f"{found.name} cannot run the model: {first_line(error)}") from error
    return BuiltEngine(executor, kernels.name)
