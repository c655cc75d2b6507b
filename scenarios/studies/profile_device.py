"""`llmsim profile`: every kernel and whole steps of the real engine, timed on a device, as a table that is fitted.

The steps of a grid are visited several times, each time in another order, so that drift and what else the device does
spread over all of them. Each visit is written down at once: a killed profile goes on where it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ... import __version__
from ...calibrate.noise import noise_warning
from ...calibrate.whole_steps import STEPS, steps_csv
from ...calibrate.writing import write_files, write_zipped
from ...sim.cost_model.profile_header import ModelShapes, ProfileHeader, UnequalContexts
from ..real_setup import real_engine_asked
from .device_names import catalog_name
from .interrupted import StudyInterrupted
from .profile_points import PointsFile, check_folder
from .profile_setup import GridName, Wishes, session_of
from .profile_sheet import peaks_in_sheet_units, sheet_of, with_floors_below
from .profile_table import (
    TimedShape,
    attention_launches,
    host_of,
    steps_of,
    timings_of,
)

if TYPE_CHECKING:
    from ...real_engine.profiler.steps import TimedStep

VISITS = 4
"""To each step; short ones are visited twice as often, each time for half as long."""
SHORT_VISITS = 2 * VISITS
BUDGET_S: dict[GridName, float] = {"small": 0.08, "full": 0.1}
"""Most time of a visit, but for steps that take longer."""


@dataclass(frozen=True, slots=True)
class Profiled:
    """What came of it."""

    header: ProfileHeader
    num_timings: int
    num_steps: int
    noise: str | None
    """One sentence where the device was too busy."""


class ProfileStudy:
    """A device and a model, set up, and the points that a folder holds of them already."""

    def __init__(self, wishes: Wishes, folder: Path, *, force: bool, warn: Callable[[str], None]) -> None:
        """Raises ScenarioError for a model, a device or a folder that cannot be used; then nothing is written."""
        check_folder(folder, force=force)
        self.folder = folder
        self._session, self.wishes = session_of(wishes, warn)
        assert self.wishes.grid is not None, self.wishes
        self._grid: GridName = self.wishes.grid
        self.grid_steps, self._facts = self._plan()
        self.points = PointsFile(folder, self._identity(), force=force)
        self._todo = list(self._remaining())

    @property
    def num_visits(self) -> int:
        """Visits in all, those included that were made before."""
        return sum(visits_to(step) for step in self.grid_steps)

    @property
    def num_done(self) -> int:
        """Of them, those that need not be made any more."""
        return self.num_visits - len(self._todo)

    def run(self, advance: Callable[[], None]) -> Profiled:
        """Measure what is left, calling `advance` after each visit; then write the table.

        Raises StudyInterrupted on Ctrl-C, and ScenarioError where a step fails: the points are kept.
        """
        try:
            with real_engine_asked():
                self._measure(advance)
        except KeyboardInterrupt:
            kept = f"{self.num_visits - len(self._todo)} of {self.num_visits} visits are kept in {self.folder}"
            raise StudyInterrupted(f"interrupted; {kept}, and the same command goes on from there") from None
        return self._write()

    def _plan(self) -> tuple[list[TimedStep], Any]:
        from ...real_engine.profiler.grids import GRIDS

        grid = GRIDS[self._grid]
        steps = self._session.steps(grid, self.wishes.seed)
        return steps, self._session.facts()

    def _identity(self) -> dict[str, Any]:
        """What must be the same for points to belong together."""
        wishes = asdict(self.wishes) | {"kernels": self._session.kernels.name}
        del wishes["model"]  # a path may be written in several ways
        sizes = self._shapes().model_dump(exclude={"name", "dtype"}) | {"num_layers": self._session.spec.num_layers}
        names = "\n".join(step.name() for step in self.grid_steps)
        wishes["steps"] = hashlib.sha256(names.encode()).hexdigest()[:16]
        return {**wishes, "device name": self._facts.device, "software": self._software(), **sizes}

    def _software(self) -> str:
        return f"llmsim {__version__}, {self._facts.software}"

    def _shapes(self) -> ModelShapes:
        dtype: Literal["fp32", "bf16"] = "fp32" if self.wishes.dtype == "fp32" else "bf16"
        return ModelShapes.of(replace(self._session.spec, dtype=dtype))

    def _remaining(self) -> Iterator[tuple[TimedStep, int]]:
        """Steps and the numbers of their visits, in the order in which they are made."""
        done = {(line["step"], line["visit"]) for line in self.points.lines if "visit" in line}
        failed = {line["step"] for line in self.points.lines if "failure" in line}
        for number in range(SHORT_VISITS):
            order = np.random.default_rng([self.wishes.seed, number]).permutation(len(self.grid_steps))
            for step in (self.grid_steps[i] for i in order):
                due = number % (SHORT_VISITS // visits_to(step)) == 0
                if due and (step.name(), number) not in done and step.name() not in failed:
                    yield step, number

    def _measure(self, advance: Callable[[], None]) -> None:
        session, points = self._session, self.points
        points.add({"peaks": peaks_in_sheet_units(session)})
        if not points.values("host"):
            from ...real_engine.profiler.grids import GRIDS

            points.add({"host": [list(cost) for cost in session.host_costs(GRIDS[self._grid].host_batches)]})
        self._set_up()
        visited: set[str] = set()
        while self._todo:
            step, number = self._todo[0]
            budget_s = BUDGET_S[self._grid] * VISITS / visits_to(step)
            found = session.visit(step, budget_s, is_first=step.name() not in visited)
            visited.add(step.name())
            if found.failure is not None:
                self._fail(step, found.failure)
            else:
                kernels = {name: [_rounded(run) for run in runs] for name, runs in found.kernels.items()}
                points.add({"step": step.name(), "visit": number, "kernels": kernels, "whole": _rounded(found.whole)})
                self._todo.pop(0)
            advance()
        points.add({"peaks": peaks_in_sheet_units(session)})

    def _set_up(self) -> None:
        """Make room on the device; what does not fit is noted and not tried."""
        for step in self._session.set_up(list(dict.fromkeys(step for step, _ in self._todo))) if self._todo else ():
            self._fail(step, "out of memory")

    def _fail(self, step: TimedStep, why: str) -> None:
        self.points.add({"step": step.name(), "failure": why})
        self._todo = [(other, number) for other, number in self._todo if other != step]

    def _write(self) -> Profiled:
        shapes = {step.name(): step.shape() for step in self.grid_steps}
        lines = [line for line in self.points.lines if "visit" in line]
        visits = [TimedShape(line["step"], shapes[line["step"]], line["kernels"], line["whole"]) for line in lines]
        timings, steps = timings_of(visits), steps_of(visits, self._session.spec.num_layers)
        header = with_floors_below(timings, self._header(visits))
        write_zipped(self.folder / STEPS, steps_csv(steps))
        write_files(self.folder, header, timings)
        return Profiled(header, len(timings), len(steps), noise_warning(timings))

    def _header(self, visits: list[TimedShape]) -> ProfileHeader:
        wishes, facts, shapes = self.wishes, self._facts, self._shapes()
        sheet = sheet_of(facts, wishes.dtype == "fp32", self.points.values("peaks"))
        failed = [line["step"] for line in self.points.lines if "failure" in line]
        return ProfileHeader(
            name=f"{shapes.name}@{wishes.device}",
            gpu=sheet.name if sheet is not None else catalog_name(facts.device) or facts.device,
            data_sheet=sheet,
            device=facts.device,
            model=shapes,
            kv_dtype_bytes=4 if wishes.dtype == "fp32" else 2,
            software=f"{self._software()}, {self._session.kernels.name} kernels",
            clock=self._session.clock(),
            threads=wishes.threads if wishes.device == "cpu" else None,
            measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
            source=wishes.command(),
            attention=attention_launches(visits),
            unequal_contexts=UnequalContexts(applied=True),
            graph_sizes=facts.graph_sizes,
            logits="sampled",
            out_of_memory=tuple(dict.fromkeys(failed)),
            host=host_of(self.points.values("host")[0]),
        )


def visits_to(step: TimedStep) -> int:
    """How often a step is visited."""
    return SHORT_VISITS if step.is_short else VISITS


def _rounded(times: list[float]) -> list[float]:
    """To a nanosecond."""
    return [round(time, 3) for time in times]
