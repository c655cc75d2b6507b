"""The data sheet of a device that the catalog does not have, or not all that is needed of it: measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...calibrate.fit import floors_of
from ...policies.core import specs
from ...sim.cost_model.kernel_floors import KernelFloors
from ...sim.cost_model.profile_header import DataSheet, ProfileHeader
from ...sim.cost_model.timings import Timing
from .device_names import catalog_name

if TYPE_CHECKING:
    from ...real_engine.profiler.session import Facts, ProfileSession


def peaks_in_sheet_units(session: ProfileSession) -> dict[str, float]:
    """How fast the device copies and multiplies now; on a CPU a copy to the host is one within the memory."""
    found = session.peaks()
    return {
        "bandwidth_gb_s": round(found.copy_bytes_per_s / 1e9, 3),
        "host_link_gb_s": round(found.host_link_bytes_per_s / 1e9, 3),
        "bf16_tflop_s": round(found.flop_per_s["bfloat16"] / 1e12, 6),
        "fp32_tflop_s": round(found.flop_per_s["float32"] / 1e12, 6),
    }


def sheet_of(facts: Facts, in_fp32: bool, measured: Sequence[Mapping[str, float]]) -> DataSheet | None:
    """The best of what was measured; None where the catalog's sheet says what is needed.

    No kernel may beat its floor, and on a CPU those of 16 bits may compute in fp32: the faster of the two counts.
    """
    known = catalog_name(facts.device)
    if known is not None and (not in_fp32 or specs.gpu(known).fp32_flop_per_s):
        return None
    best = {key: max(peaks[key] for peaks in measured) for key in measured[0]}
    best["bf16_tflop_s"] = max(best["bf16_tflop_s"], best["fp32_tflop_s"])
    return DataSheet(name=facts.device, memory_gib=round(facts.memory_bytes / specs.GIB, 3), **best)


def with_floors_below(timings: Sequence[Timing], header: ProfileHeader) -> ProfileHeader:
    """A measured data sheet raised to what the kernels themselves have reached, where that is more than its peaks."""
    sheet = header.data_sheet
    if sheet is None:
        return header
    floors = floors_of(header)
    reached = [_reached(floors, timing) for timing in timings if timing.kernel != "attention"]
    compute, memory = (max(1.0, *shares) for shares in zip(*reached, strict=True))
    peaks = {
        "bandwidth_gb_s": round(sheet.bandwidth_gb_s * memory, 3),
        "bf16_tflop_s": round(sheet.bf16_tflop_s * compute, 6),
        "fp32_tflop_s": round((sheet.fp32_tflop_s or sheet.bf16_tflop_s) * compute, 6),
    }
    return header.model_copy(update={"data_sheet": sheet.model_copy(update=peaks)})


def _reached(floors: KernelFloors, timing: Timing) -> tuple[float, float]:
    """Shares of the peaks, FLOP/s and bytes/s, at which a kernel ran."""
    kernel, time_s = floors.kernel(timing.kernel, timing.shape[0]), timing.time_us / 1e6
    return floors.roofline.compute_floor_s(kernel) / time_s, floors.roofline.memory_floor_s(kernel) / time_s
