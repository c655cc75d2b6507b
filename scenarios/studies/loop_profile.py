"""The profile that a loop's simulations go by: one that is given, or the device measured now; and whose it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from ... import __version__
from ...calibrate.fit import fit
from ...calibrate.given import path_of
from ...calibrate.whole_steps import read_steps
from ...calibrate.writing import write_profile
from ...sim.cost_model.profile import HEADER, Profile, read_profile, read_table
from ...sim.cost_model.profile_header import ModelShapes, ProfileHeader
from ..assembly import Assembly
from ..errors import ScenarioError
from ..real_setup import RealSetup, real_engine_asked
from .profile_device import ProfileStudy
from .profile_setup import GridName, Wishes

OPTION = "--profile"


def measured_profile(
    setup: RealSetup, folder: Path, grid: GridName | None, warn: Callable[[str], None], advance: Callable[[int], None]
) -> Profile:
    """The profile in `folder / "profile"`; where it is missing the device is measured, from where it was broken off.

    `advance` is called with the number of visits that are left. Raises StudyInterrupted.
    """
    target, table = folder / "profile", folder / "table"
    if (target / HEADER).is_file():
        return read_profile(target)
    if not (table / HEADER).is_file():
        wishes = Wishes(
            model=str(setup.source) if isinstance(setup.source, Path) else setup.source.name,
            device=str(setup.found.device),
            grid=grid,
            dtype=setup.device.dtype,
            kernels=setup.options.kernels,
            threads=setup.options.threads or 1,
        )
        study = ProfileStudy(wishes, table, force=False, warn=warn)
        left = iter(range(study.num_visits - study.num_done - 1, -1, -1))
        study.run(lambda: advance(next(left, 0)))
    read = read_table(table)
    fitted = fit(read, steps=read_steps(read.path))
    write_profile(target, fitted.header, fitted.timings)
    return read_profile(target)


def given_profile(given: Path) -> Profile:
    """The profile at a path, or else the one of this name that comes with the package. Raises ProfileError."""
    return read_profile(path_of(given))


def differences(profile: Profile, setup: RealSetup) -> list[str]:
    """In what the profile is another's than this device's, this model's or these versions': sentences."""
    header, said = profile.header, []
    if difference := header.model.difference(setup.assembly.model):
        said.append(f"it was measured with {header.model.name}: {difference}")
    for what, theirs, mine in _facts(header, setup):
        if theirs != mine:
            said.append(f"its {what} is {theirs}, the run's {mine}")
    return said


def _facts(header: ProfileHeader, setup: RealSetup) -> list[tuple[str, object, object]]:
    device, assembly = setup.found.device, setup.assembly
    shapes = {"head_dim": assembly.model.head_dim, "block_size": assembly.config.block_size}
    with real_engine_asked(assembly.scenario):
        from ...kernels.choosing import Backend, kernels_for
        from ...real_engine.profiler.facts import device_name, software

        kernels = kernels_for(device, cast(Backend, str(setup.options.kernels)), lambda _: None, **shapes)
    threads = None if setup.found.is_gpu else setup.options.threads
    kv_bytes = 4 if setup.device.dtype == "fp32" else 2
    return [
        ("device", header.device, device_name(device)),
        ("software", header.software, f"llmsim {__version__}, {software()}, {kernels.name} kernels"),
        ("number of threads", header.threads, threads),
        ("KV cache of bytes a number", header.kv_dtype_bytes, kv_bytes),
    ]


def check_profile(profile: Profile, setup: RealSetup, *, force: bool) -> tuple[Profile, list[str]]:
    """The profile, and in what it is another's, which `force` allows. Raises ScenarioError."""
    found = differences(profile, setup)
    if found and not force:
        says = f"{profile.path} is not of this run: {found[0]}; measure again, or --force"
        raise ScenarioError(None, OPTION, says)
    return (_pretending(profile, setup.assembly) if found else profile), found


def _pretending(profile: Profile, assembly: Assembly) -> Profile:
    """The same times as if they were this model's."""
    shapes = ModelShapes.of(assembly.model)
    update = {"model": shapes, "kv_dtype_bytes": 4 if assembly.model.dtype == "fp32" else 2}
    return replace(profile, header=profile.header.model_copy(update=update))
