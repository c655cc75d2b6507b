"""A scenario on a device, and the same scenario simulated: one resolved engine, so that time alone can differ."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...sim.cost_model.profile import Profile, gpu_of
from ...sim.metrics import Summary
from ..assembly import Assembly
from ..loading import overridden
from ..real_options import RealOptions
from ..real_run import run_for_real
from ..real_setup import RealSetup, real_setup
from ..run import run_into
from ..schema import Scenario
from ..swapping import host_link
from .loop_folder import LoopFolder

Warn = Callable[[str], None]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Twin:
    """What both need."""

    setup: RealSetup
    assembly: Assembly
    """The device's, priced by the profile: the same engine, policies and number of KV blocks."""

    @classmethod
    def of(
        cls, scenario: Scenario, options: RealOptions, profile: Profile, overrides: Mapping[str, Any], warn: Warn
    ) -> Twin:
        """The scenario with overrides on the profile's hardware, for which policies that ask are told step times."""
        raw = scenario.model_dump(mode="json", exclude_unset=True)
        hardware: dict[str, Any] = {"hardware": {"profile": str(profile.path.resolve())}}
        if profile.header.model.dtype == "fp32":
            hardware["engine.dtype"] = "float32"
        setup = real_setup(overridden(raw, {**overrides, **hardware}, scenario.source), options, warn)
        gpu, mine = gpu_of(profile.header), setup.assembly
        link = host_link(mine.scenario, mine.policies, gpu, mine.budget, mine.folders)
        return cls(setup, replace(mine, profile=profile, gpu=gpu, host_link=link))

    def measure(self, folder: LoopFolder, name: str, warn: Warn, on_progress: Progress | None = None) -> Summary:
        """The run on the device, with its journal; one that is there already is not repeated.

        Raises KeyboardInterrupt where it is broken off, and leaves nothing of it then.
        """
        if (known := folder.summary(name)) is not None:
            return known
        target = folder.part(name)
        summary = run_for_real(self.setup, target, journal=True, warn=warn, on_progress=on_progress)
        if summary["interrupted"]:  # in real time it ends at a step's end, and is whole
            shutil.rmtree(target)
            raise KeyboardInterrupt
        return summary

    def simulate(self, folder: LoopFolder, name: str, warn: Warn) -> Summary:
        """The simulation, with its journal; it is made anew, since what is priced may have changed."""
        target = folder.part(name)
        return run_into(self.assembly, target, force=target.exists(), journal=True, warn=warn)
