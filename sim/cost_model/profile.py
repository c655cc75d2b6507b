"""A profile: measured kernel times of one model on one GPU, a folder with `profile.yaml` and a table of timings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import yaml
from pydantic import ValidationError

from ...policies.core import specs
from ...policies.core.gpu_spec import GpuSpec
from ...policies.core.model_spec import ModelSpec
from .curve_grid import CurveGrid, Floor
from .grouped_curve import GroupedCurve
from .profile_header import ProfileHeader
from .tile_curve import TileCurve
from .timings import ProfileError, Timing, read_timings

HEADER = "profile.yaml"
Curve: TypeAlias = CurveGrid | TileCurve | GroupedCurve
"""Of a kernel that depends on tokens or rows alone."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Header and timings; in a fitted profile each shape of a kernel stands once."""

    header: ProfileHeader
    timings: list[Timing]
    path: Path

    def points(self, kernel: str) -> dict[tuple[int, ...], float]:
        """A kernel's times in microseconds, by shape, derived ones included."""
        return {timing.shape: timing.time_us for timing in self.timings if timing.kernel == kernel}

    def derived(self, kernel: str) -> set[tuple[int, ...]]:
        """Those of a kernel's shapes that were not measured themselves."""
        return {timing.shape for timing in self.timings if timing.kernel == kernel and timing.repeats == 0}

    def curve(self, kernel: str, floor: Floor) -> Curve:
        """The curve of a kernel that depends on tokens or rows alone; `floor` takes them."""
        points, derived = self.points(kernel), self.derived(kernel)
        if kernel in self.header.row_groups:
            return GroupedCurve(points, floor, self.header.row_groups[kernel], derived)
        if kernel in self.header.tiles:
            return TileCurve(points, floor, derived, self.header.tiles[kernel])
        return CurveGrid(points, floor, derived)

    def check_model(self, model: ModelSpec, tensor_parallel: int, kv_dtype_bytes: int) -> None:
        """ProfileError where the kernels that were measured are not those of this model, so divided."""
        header = self.header
        if difference := header.model.difference(model):
            raise ProfileError(f"{self.path}: is a profile of {header.model.name}: {difference}")
        if model.num_sliding_layers:
            raise ProfileError(f"{self.path}: holds no times of sliding windows, which {model.name} has")
        if header.tensor_parallel != tensor_parallel:
            raise ProfileError(
                f"{self.path}: was measured with tensor_parallel {header.tensor_parallel}, not {tensor_parallel}"
            )
        if header.kv_dtype_bytes != kv_dtype_bytes:
            raise ProfileError(f"{self.path}: was measured with a KV cache of {header.kv_dtype_bytes} bytes a number")


def gpu_of(header: ProfileHeader) -> GpuSpec:
    """The device that was measured: its own data sheet, or the catalog's. Raises specs.UnknownName."""
    if header.data_sheet is not None:
        return specs.gpu_from_sheet(header.data_sheet.model_dump())
    return specs.gpu(header.gpu)


def read_profile(path: Path) -> Profile:
    """The fitted profile in a folder, or whose `profile.yaml` this is; ProfileError says what is wrong with it."""
    profile = read_table(path)
    if profile.header.fit is None:
        raise ProfileError(f"{path}: is a table of timings, not a fitted profile; see llmsim calibrate fit")
    return profile


def read_table(path: Path) -> Profile:
    """The same whether fitted or not."""
    folder = path.parent if path.name == HEADER else path
    if not folder.is_dir():
        raise ProfileError(f"{path}: is not the folder of a profile, nor its {HEADER}")
    header = read_header(folder / HEADER)
    return Profile(header, read_timings(folder), folder)


def read_header(path: Path) -> ProfileHeader:
    """The header of a profile; ProfileError names the key at fault."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ProfileError(f"{path}: is not YAML: {' '.join(str(error).split())}") from None
    try:
        return ProfileHeader.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ProfileError(f"{path}: {where}: {first['msg']}") from None
