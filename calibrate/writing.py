"""Writes tables and profiles: a folder with `profile.yaml` and `timings.csv.gz`, whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

import yaml

from ..sim.cost_model.profile import HEADER
from ..sim.cost_model.profile_header import DataSheet, ProfileHeader
from ..sim.cost_model.timings import COLUMNS, SHAPES, ProfileError, Timing

TIMINGS = "timings.csv.gz"
DATA_SHEET = "device.yaml"
"""Of a device that the catalog does not have: a scenario without a profile may name it as its GPU."""


def write_profile(folder: Path, header: ProfileHeader, timings: Iterable[Timing], *, force: bool = False) -> None:
    """Write a new folder; ProfileError where it exists and is no profile, or may not be replaced."""
    check_target(folder, force=force)
    aside = folder.with_name(f".{folder.name}.partial-{secrets.token_hex(4)}")
    aside.mkdir(parents=True)
    try:
        write_files(aside, header, timings)
        if folder.exists():
            shutil.rmtree(folder)
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def write_files(folder: Path, header: ProfileHeader, timings: Iterable[Timing]) -> None:
    """Write the files into a folder that is there; the header, which makes it a profile, comes last."""
    write_zipped(folder / TIMINGS, _csv(timings))
    if header.data_sheet is not None:
        write_text(folder / DATA_SHEET, sheet_text(header.data_sheet))
    write_text(folder / HEADER, header_text(header))


def write_text(path: Path, text: str) -> None:
    """Text as UTF-8 with plain line ends."""
    path.write_text(text, encoding="utf-8", newline="\n")


def write_zipped(path: Path, text: str) -> None:
    """The same gzipped; equal texts are equal bytes."""
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def sheet_text(sheet: DataSheet) -> str:
    """A data sheet as YAML."""
    return yaml.safe_dump(sheet.model_dump(exclude_none=True), sort_keys=False, allow_unicode=True)


def check_target(folder: Path, *, force: bool) -> None:
    """ProfileError where a folder may not be written."""
    if not os.path.lexists(folder):
        return
    if not force:
        raise ProfileError(f"{folder}: exists already; choose another folder, or --force to replace it")
    if not (folder / HEADER).is_file():
        raise ProfileError(f"{folder}: is no profile, so --force does not replace it")


def header_text(header: ProfileHeader) -> str:
    """The header as YAML, keys in the order of the schema; what is at its default and says nothing is left out."""
    raw = header.model_dump(mode="json", exclude_none=True)
    raw = {key: value for key, value in raw.items() if value != [] or key == "graph_sizes"}
    return yaml.safe_dump(raw, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)


def _csv(timings: Iterable[Timing]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for timing in timings:
        row: dict[str, object] = dict(zip(SHAPES[timing.kernel], timing.shape, strict=True))
        row |= {"kernel": timing.kernel, "time_us": timing.time_us}
        row |= {"repeats": timing.repeats, "spread_us": timing.spread_us}
        writer.writerow(row)
    return text.getvalue()
