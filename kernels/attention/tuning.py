"""How large the attention kernels' tiles are on each kind of GPU: a table, so that nothing is tuned at run time.

The numbers come from what the compiler makes of the kernels (registers, shared memory, spills; a test holds them) and
from data sheets. None has been measured yet: `decode_alternatives` and `extend_alternatives` are for a sweep on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
import triton

Fp32Precision = Literal["ieee", "tf32"]
GpuClass = Literal["nvidia", "hopper", "amd", "interpreter"]


@dataclass(frozen=True, slots=True)
class DecodeConfig:
    """Of `decode`: a program has `num_stages - 1` tiles of K and V in shared memory."""

    tile: int
    """Tokens; a power of two."""
    num_warps: int
    num_stages: int
    programs_per_multiprocessor: int
    """How many are resident at once. More than that, and the last ones run alone; with fewer, memory idles."""
    least_share: int = 2
    """Tiles that a program takes at least: below 128 to 256 tokens starting one costs more than it brings."""
    fp32_precision: Fp32Precision = "ieee"
    """Of products of fp32 numbers on tensor cores; `tf32` keeps 10 bits of them."""


@dataclass(frozen=True, slots=True)
class ExtendConfig:
    """Of `extend`: a program has `num_stages` tiles of K and V in shared memory, and its queries."""

    rows: int
    """Query tokens x query heads of one KV head, of a program; a power of two, at least the group."""
    tile: int
    """Keys; a power of two."""
    num_warps: int
    num_stages: int
    num_splits: int = 1
    """Programs that share the keys of one tile of rows, where there are fewer tiles than multiprocessors."""
    least_share: int = 4
    """Tiles of keys that each of them takes at least."""
    fp32_precision: Fp32Precision = "ieee"


def decode_config(device: torch.device, head_dim: int, dtype: torch.dtype, group: int) -> DecodeConfig:
    """What decode attention uses for keys of `head_dim` numbers, each of them met by `group` query heads."""
    key_bytes = head_dim * dtype.itemsize
    match gpu_class(device):
        case "interpreter":
            return DecodeConfig(tile=32, num_warps=4, num_stages=2, programs_per_multiprocessor=4, least_share=1)
        case "hopper":
            # 227 KB and 64k registers: three programs of 72 KB and up to 168 registers a thread; `decode` has the rest.
            # Padded to 32 heads a program has 78 KB, to 64 up to 115 KB and 255 registers.
            if group > 64:
                return DecodeConfig(8192 // key_bytes, num_warps=8, num_stages=3, programs_per_multiprocessor=1)
            programs = 3 if group <= 16 else 2 if group <= 32 else 1
            return DecodeConfig(16384 // key_bytes, 4, 3, programs_per_multiprocessor=programs)
        case "nvidia":
            # 99 KB on GeForce, 163 KB on an A100: two programs of 38 KB, 32 KB under way where 11 KB are needed.
            return _narrow_decode(8192 // key_bytes, group, num_stages=3, programs=2)
        case "amd":
            # 64 KB and 512 registers: three programs of 16 KB and up to 160 registers. An MI300X needs 5.3 TB/s x
            # 800 ns, 14 KB on each of 304 units; copies go through registers, one tile of 16 KB under way a program.
            return _narrow_decode(8192 // key_bytes, group, num_stages=2, programs=3)


def _narrow_decode(tile: int, group: int, num_stages: int, programs: int) -> DecodeConfig:
    """Where memory is short: many heads take more warps, of which one program fits."""
    if group <= 16:
        return DecodeConfig(tile, 4, num_stages, programs)
    return DecodeConfig(tile, 8, num_stages, programs_per_multiprocessor=1)


def decode_alternatives(head_dim: int, dtype: torch.dtype) -> list[DecodeConfig]:
    """Other settings worth measuring on a Hopper GPU, each within its registers and shared memory."""
    shapes = [
        (16384, 4, 3, 3),
        (16384, 4, 4, 2),
        (16384, 4, 5, 1),
        (16384, 4, 7, 1),
        (16384, 8, 3, 2),
        (8192, 4, 3, 4),
        (8192, 4, 5, 3),
        (8192, 4, 7, 2),
        (8192, 2, 3, 5),
        (32768, 8, 3, 1),
    ]
    key_bytes = head_dim * dtype.itemsize
    return [DecodeConfig(tile // key_bytes, warps, stages, programs) for tile, warps, stages, programs in shapes]


def extend_config(
    device: torch.device, head_dim: int, dtype: torch.dtype, group: int, num_rows: int, longest_rows: int
) -> ExtendConfig:
    """What extend attention uses for `num_rows` query tokens x heads; a chunk has up to `longest_rows` on a KV head."""
    gpu = gpu_class(device)
    multiprocessors = num_multiprocessors(device)
    least = max(16, triton.next_power_of_2(group))
    fits = min(128, max(least, triton.next_power_of_2(longest_rows)))
    if fits == 128 and 2 * num_rows <= 128 * multiprocessors:
        fits = max(64, least)  # half the tile, twice as many multiprocessors at work
    shape = _extend_shape(gpu, head_dim, fits) if dtype.itemsize == 2 else _exact_shape(gpu, least)
    # Tiles of 128 rows are alone on their multiprocessor and chosen where they fill most of these: nothing to split.
    resident = multiprocessors if shape.rows >= 128 else 2 * multiprocessors
    return replace(shape, num_splits=max(1, min(32, resident // -(-num_rows // shape.rows))))


def _exact_shape(gpu: GpuClass, least_rows: int) -> ExtendConfig:
    """fp32: exact products are computed without tensor cores. 80 registers and 53 KB, three programs (D 128, sm_90)."""
    return ExtendConfig(rows=max(32, least_rows), tile=32, num_warps=4 if gpu == "amd" else 8, num_stages=2)


def _extend_shape(gpu: GpuClass, head_dim: int, rows: int) -> ExtendConfig:
    """16-bit queries in tiles of `rows`; compiled, without spills."""
    match gpu:
        case "interpreter":
            return ExtendConfig(rows, tile=32, num_warps=4, num_stages=2)
        case "hopper":
            # 128 rows: 64 read K and V twice as often, 32 KB for 2.1 MFLOP, which L2 (5.5 TB/s) limits to 360 TFLOP/s.
            # D 128 has 204 registers and 128 KB, one program a multiprocessor; D 64 has 128 and 64 KB, two of them.
            # 64 rows have 196 registers and 112 KB, two programs.
            return ExtendConfig(rows, tile=64, num_warps=8 if rows >= 128 else 4, num_stages=3)
        case "amd":
            # 198 (D 128) and 138 registers of 512: two or three waves on each of a unit's four processors.
            return ExtendConfig(rows, tile=64 if rows >= 64 else 32, num_warps=8 if rows >= 64 else 4, num_stages=2)
        case "nvidia":
            # For sm_80: 230 registers and 73 KB with D 128, where larger tiles take all 255 and spill with 64 rows.
            tile = 64 if head_dim == 64 else 32
            return ExtendConfig(rows, tile, num_warps=8 if rows >= 128 else 4, num_stages=3)


def extend_alternatives() -> list[ExtendConfig]:
    """Other settings worth measuring on a Hopper GPU for 16-bit queries, each within registers and shared memory."""
    shapes = [(128, 64, 8, 2), (128, 64, 8, 3), (128, 64, 8, 5), (128, 128, 8, 2), (64, 64, 4, 3)]
    shapes += [(64, 64, 4, 2), (64, 64, 4, 5), (64, 32, 4, 7)]
    return [ExtendConfig(*shape) for shape in shapes]


def gpu_class(device: torch.device) -> GpuClass:
    """Which entries of the table are a device's; where kernels are only compiled, the target's."""
    if triton.knobs.runtime.interpret:
        return "interpreter"
    if device.type == "cuda" and torch.version.hip is None:
        major, _ = torch.cuda.get_device_capability(device)
        return _nvidia_class(major)
    target = triton.runtime.driver.active.get_current_target()
    return "amd" if target.backend == "hip" else _nvidia_class(target.arch // 10)


def _nvidia_class(major: int) -> GpuClass:
    """Data-centre GPUs from the H100 on have 227 KB of shared memory; those of 12.x are not among them."""
    return "hopper" if major in (9, 10) else "nvidia"


def num_multiprocessors(device: torch.device) -> int:
    """Streaming multiprocessors, or compute units, of a GPU; 1 of anything else."""
    if device.type != "cuda":
        return 1
    count: int = torch.cuda.get_device_properties(device).multi_processor_count
    return count
