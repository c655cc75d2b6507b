"""`llmsim calibrate loop`: profile a device, run a scenario on it, simulate the same, and say how far apart they are.

profile   kernels and whole steps of the device, fitted; no run of the scenario is known to it
real-N    the scenario on the device, repeated: by how much these differ is the noise of the measurement
simulated the same scenario, engine and seed, priced by the profile
other     the scenario with another seed, on the device: what a correction learned from real-1 is tried on
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ... import __version__
from ...calibrate.loop.pace import pace_of
from ...calibrate.loop.recorded import PricedSteps, RecordedStep, priced
from ...calibrate.loop.verdicts import compared, counts, figures_of
from ...calibrate.noise import noise_warning
from ...sim.cost_model.correction import Kind
from ...sim.cost_model.profile import Profile
from ...sim.metrics import Summary
from ..loading import overridden
from ..real_options import Clock, RealOptions
from ..real_setup import RealSetup, real_setup
from ..schema import Scenario
from ..vllm_defaults import ResolvedVllm
from .interrupted import StudyInterrupted
from .loop_correction import Corrected, tried
from .loop_decisions import first_divergence, recorded_steps
from .loop_folder import LoopFolder
from .loop_policies import PolicyStudy, Variants
from .loop_profile import check_profile, given_profile, measured_profile
from .loop_twin import Twin
from .profile_setup import GridName, default_grid

Warn = Callable[[str], None]
SIMULATED, OTHER = "simulated", "other"
THREAD_TIME = "processor time of the computing thread"


@dataclass(frozen=True, slots=True)
class LoopWishes:
    """What is compared, and how."""

    scenario: Scenario
    options: RealOptions
    profile: Path | None = None
    """None: the device is measured."""
    grid: GridName | None = None
    repeats: int = 2
    force: bool = False
    """Take a profile of another device, model or version all the same."""
    policies: Variants | None = None
    """Whether policies are ranked alike, too."""

    def identity(self) -> dict[str, Any]:
        """What must be the same for parts of a loop to belong together."""
        from ...real_engine.devices import versions

        options = {key: str(value) for key, value in asdict(self.options).items() if value is not None}
        return {
            "scenario": self.scenario.model_dump(mode="json", exclude_unset=True),
            "options": options,
            "profile": None if self.profile is None else str(self.profile.resolve()),
            "versions": {"llmsim": __version__, **versions()},
        }


@dataclass(frozen=True, slots=True)
class Loop:
    """What came of it."""

    figures: dict[str, Any]
    """The report's, strict JSON."""
    steps: dict[Kind, PricedSteps]
    corrected: dict[Kind, tuple[PricedSteps, PricedSteps]]
    """Steps of the run with another seed, without the correction and with it."""
    folder: LoopFolder
    repeats: tuple[str, ...]


class LoopStudy:
    """A scenario and a device, set up."""

    def __init__(self, wishes: LoopWishes, folder: Path, warn: Warn, say: Callable[[str], None]) -> None:
        """Raises ScenarioError for what cannot be; then nothing is written. `say` hears which part comes next."""
        self.wishes = wishes
        self.folder = LoopFolder(folder)
        self._warn, self._say = warn, say
        self.setup = real_setup(wishes.scenario, wishes.options, warn)
        if wishes.profile is not None:  # its faults are told before anything runs
            check_profile(given_profile(wishes.profile), self.setup, force=wishes.force)
        self._check_variants()
        grid = wishes.grid or default_grid(is_gpu=self.setup.found.is_gpu)
        self.folder.claim(
            {
                **wishes.identity(),
                "grid": grid if wishes.profile is None else None,
                "num_blocks": self.setup.assembly.budget.num_blocks,
            }
        )
        for name, changes in (wishes.policies or {}).items():
            self.folder.claim_variant(name, changes)

    def _check_variants(self) -> None:
        """What is wrong with a policy is told before anything runs."""
        wishes = self.wishes
        raw, source = wishes.scenario.model_dump(mode="json", exclude_unset=True), wishes.scenario.source
        for changes in (wishes.policies or {}).values():
            real_setup(overridden(raw, changes, source), wishes.options, lambda _: None)

    def run(self, advance: Callable[[int], None]) -> Loop:
        """Carry out what is not there yet. `advance` hears how many visits the profile still needs.

        Raises StudyInterrupted on Ctrl-C: what is done is kept.
        """
        try:
            return self._carried_out(advance)
        except KeyboardInterrupt:
            kept = f"what is done is kept in {self.folder.path}"
            raise StudyInterrupted(f"interrupted; {kept}, and the same command goes on from there") from None

    def _carried_out(self, advance: Callable[[int], None]) -> Loop:
        load_before = os.getloadavg()
        profile, differences = self._profile(advance)
        twin = self._twin(profile, {})
        repeats = tuple(f"real-{number}" for number in range(1, self.wishes.repeats + 1))
        runs = [self._measured(twin, name) for name in repeats]
        ours = twin.simulate(self.folder, SIMULATED, self._warn)
        table = compared([figures_of(run) for run in runs], figures_of(ours))
        recorded = [recorded_steps(self.folder.part(name)) for name in repeats]
        model = twin.assembly.cost_model()
        steps = priced(recorded[0][0], model)
        corrected = self._correction(profile, recorded[0][0])
        figures = {
            "scenario": self.wishes.scenario.name,
            "runs_on": _facts_of(twin.setup, runs[0], self.wishes.options),
            "profile": self._profile_facts(profile, differences),
            "load_average": {"before": list(load_before), "after": list(os.getloadavg())},
            "traffic": _traffic(runs[0], ours),
            "replays": {
                name: {"num_plans": replayed.num_plans, "difference": replayed.difference}
                for name, (_, replayed) in zip(repeats, recorded, strict=True)
            },
            "pace": {name: pace_of(found, model)._asdict() for name, (found, _) in zip(repeats, recorded, strict=True)},
            "steps": {kind: found.errors()._asdict() for kind, found in steps.items()},
            "latencies": {metric: {n: row._asdict() for n, row in rows.items()} for metric, rows in table.items()},
            "verdicts": counts(table),
            "divergence": first_divergence(self.folder.part(repeats[0]), self.folder.part(SIMULATED)),
            "divergence_of_repeats": self._divergence_of(repeats),
            "correction": corrected.figures,
            "policies": self._policies(profile),
        }
        return Loop(figures, steps, corrected.steps, self.folder, repeats)

    def _profile(self, advance: Callable[[int], None]) -> tuple[Profile, list[str]]:
        given = self.wishes.profile
        if given is None:
            self._say("profile: what the device's kernels take")
        path = self.folder.path
        found = (
            given_profile(given) if given else measured_profile(self.setup, path, self.wishes.grid, self._warn, advance)
        )
        return check_profile(found, self.setup, force=self.wishes.force)

    def _twin(self, profile: Profile, overrides: dict[str, Any]) -> Twin:
        """The scenario on both engines, with the blocks that the device's memory gives it."""
        scenario, budget = self.wishes.scenario, self.setup.assembly.budget
        if isinstance(self.setup.assembly.engine, ResolvedVllm):
            pinned = {"engine.num_gpu_blocks_override": budget.num_blocks}
        else:
            pinned = {"engine.max_total_tokens": budget.num_blocks * budget.block_size}
        pinned = {} if "engine" in overrides else pinned
        return Twin.of(scenario, self.wishes.options, profile, {**pinned, **overrides}, self._warn)

    def _measured(self, twin: Twin, name: str) -> Summary:
        self._say(f"{name}: on the device" + (", there already" if self.folder.summary(name) else ""))
        return twin.measure(self.folder, name, self._warn)

    def _divergence_of(self, repeats: tuple[str, ...]) -> dict[str, Any] | None:
        if len(repeats) < 2:
            return None
        return first_divergence(self.folder.part(repeats[0]), self.folder.part(repeats[1]))

    def _correction(self, profile: Profile, steps: list[RecordedStep]) -> Corrected:
        """Learned from the first run, tried on one with another seed."""
        twin = self._twin(profile, {"run.seed": self.wishes.scenario.run.seed + 1})
        measured = self._measured(twin, OTHER)
        return tried(steps, twin, measured, self.folder.part(OTHER), self._warn)

    def _policies(self, profile: Profile) -> dict[str, Any] | None:
        variants = self.wishes.policies
        if variants is None:
            return None
        study = PolicyStudy(self.folder, max(self.wishes.repeats, 2), self._warn, self._say)
        return study.run({name: self._twin(profile, overrides) for name, overrides in variants.items()})

    def _profile_facts(self, profile: Profile, differences: list[str]) -> dict[str, Any]:
        header = profile.header
        return {
            "path": str(profile.path),
            "measured_at": header.measured_at,
            "device": header.device,
            "software": header.software,
            "forced_since": differences,
            "noise": noise_warning(profile.timings),
            "held_out": None if header.fit is None else header.fit.held_out.model_dump(),
        }


def _facts_of(setup: RealSetup, summary: Summary, options: RealOptions) -> dict[str, Any]:
    keys = ("device", "kernels", "dtype", "clock", "threads", "torch", "triton", "model", "preset", "usable_blocks")
    facts = {key: summary.get(key) for key in keys}
    timed = options.clock == Clock.VIRTUAL and not setup.found.is_gpu and summary.get("threads") == 1
    return {**facts, "step_time": THREAD_TIME if timed else "elapsed time"}


def _traffic(measured: Summary, simulated: Summary) -> dict[str, Any]:
    keys = ("num_steps", "num_preemptions", "prefix_hit_rate", "requests_per_s", "overloaded")
    both = {key: [measured.get(key), simulated.get(key)] for key in keys if key in measured}
    return {"num_requests": measured["num_requests"]["finished"], **both}
