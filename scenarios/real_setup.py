"""A scenario on a device: the device found, the model known, the memory divided, before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..policies.core import specs
from ..policies.core.model_spec import ModelSpec
from ..policies.core.specs import GIB
from ..real_engine.contract import Executor
from .assembly import Assembly, assemble
from .device import Device, RealDtype
from .errors import ScenarioError
from .model_reading import is_config
from .paths import path_given
from .real_options import Dtype, RealOptions
from .real_refusals import refuse, refuse_kv_dtype, refuse_unsteady_answers
from .schema import Scenario

if TYPE_CHECKING:
    from ..real_engine.devices import FoundDevice

LARGEST_CPU_SHARE_BYTES = 4 * GIB
"""Of a CPU's memory, where nothing is asked for: a laptop goes on working, and its runs are alike."""

REAL_DTYPES: dict[Dtype, RealDtype] = {Dtype.FP32: "fp32", Dtype.BF16: "bf16", Dtype.FP16: "fp16"}
INSTALL = "pip install 'llmsim[real]', after the torch build for your hardware (README.md, The real engine)"


@dataclass(frozen=True, slots=True)
class RealSetup:
    """What a run on the real engine needs."""

    assembly: Assembly
    options: RealOptions
    found: FoundDevice
    device: Device
    source: Path | ModelSpec
    """Where the weights are; a ModelSpec has random ones."""
    has_weights: bool


@contextmanager
def real_engine_asked(scenario: Scenario | None = None) -> Iterator[None]:
    """In here the real engine may be imported. What it lacks, or cannot do, becomes a ScenarioError in one line."""
    try:
        from ..kernels.choosing import KernelsUnavailable
        from ..real_engine.devices import DeviceError
        from ..real_engine.model.errors import ModelError
    except ImportError as error:
        raise _missing(error) from None
    try:
        yield
    except ImportError as error:
        raise _missing(error) from None
    except DeviceError as error:
        raise ScenarioError(None, "--device", str(error)) from error
    except KernelsUnavailable as error:
        raise ScenarioError(None, "--kernels", str(error)) from error
    except ModelError as error:
        raise ScenarioError(scenario.source if scenario else None, "model", str(error)) from error


@contextmanager
def freed(executor: Executor) -> Iterator[None]:
    """The device's memory is freed at the end. What broke the device before is what is told."""
    try:
        yield
    except BaseException:
        with suppress(RuntimeError):  # a device that is broken cannot be waited for
            executor.close()
        raise
    executor.close()


def _missing(error: ImportError) -> ScenarioError:
    library = (error.name or "torch").partition(".")[0]
    return ScenarioError(None, None, f"the real engine needs {library}, which is not installed: {INSTALL}")


def real_setup(scenario: Scenario, options: RealOptions, warn: Callable[[str], None]) -> RealSetup:
    """The scenario's parts on the device that the options name. Raises ScenarioError.

    One of too little memory has the DoesNotFit as its cause, with what would be needed.
    """
    refuse(scenario)
    if options.model_path is not None:
        scenario = with_model(scenario, options.model_path)
    with real_engine_asked(scenario):
        from ..real_engine.devices import find_device
        from ..real_engine.model.checkpoint import has_weights
        from ..real_engine.model.loading import config_of

        found = find_device(options.device)
        source = _source(scenario, warn)
        config_of(source)  # refuses what the model does not compute
        weights_are_there = isinstance(source, Path) and has_weights(source.parent)
    if options.model_path is not None and not weights_are_there:
        raise ScenarioError("--model-path", None, f"{options.model_path} holds no safetensors")
    device = Device(found.name, _memory_bytes(options, found), _dtype(scenario, options, found))
    assembly = assemble(scenario, warn, device)
    refuse_kv_dtype(scenario, assembly.engine, device.dtype)
    refuse_unsteady_answers(scenario, device.dtype)
    _check_free(assembly, found)
    return RealSetup(assembly, options, found, device, source, weights_are_there)


def with_model(scenario: Scenario, folder: Path) -> Scenario:
    """The scenario with the model in a folder. Raises ScenarioError where there is none."""
    config = folder / "config.json"
    if not config.is_file():
        raise ScenarioError("--model-path", None, f"{folder} holds no config.json")
    changed = scenario.model_copy(update={"model": str(config.absolute())})
    changed._source = scenario.source
    return changed


def _source(scenario: Scenario, warn: Callable[[str], None]) -> Path | ModelSpec:
    if not is_config(scenario.model):
        return specs.model(scenario.model)
    return path_given(scenario, "model", scenario.model, warn)


def _dtype(scenario: Scenario, options: RealOptions, found: FoundDevice) -> RealDtype:
    if options.dtype != Dtype.AUTO:
        return REAL_DTYPES[options.dtype]
    if scenario.engine.dtype in ("bfloat16", "float16"):
        return "bf16" if scenario.engine.dtype == "bfloat16" else "fp16"
    if scenario.engine.dtype == "float32":
        return "fp32"
    return "bf16" if found.is_gpu else "fp32"


def _memory_bytes(options: RealOptions, found: FoundDevice) -> int:
    if options.device_memory_gib is not None:
        return round(options.device_memory_gib * GIB)
    return found.total_bytes if found.is_gpu else min(found.free_bytes // 2, LARGEST_CPU_SHARE_BYTES)


def _check_free(assembly: Assembly, found: FoundDevice) -> None:
    """Others may use the device: what the budget needs must be free."""
    budget = assembly.budget
    needed = budget.weights_bytes + budget.kv_bytes
    if needed > found.free_bytes:
        free, wanted = found.free_bytes / GIB, needed / GIB
        message = f"{found.name} has {free:.2f} GiB free, weights and KV take {wanted:.2f} GiB; use --device-memory"
        raise ScenarioError(assembly.scenario.source, "model", message)
