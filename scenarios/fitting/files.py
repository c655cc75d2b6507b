"""The files of a fit: a scenario, and beside it the tables that its workload draws from."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..errors import ScenarioError
from ..gpu_reading import is_data_sheet
from ..model_reading import is_config
from ..schema import Scenario
from ..workloads.reuse_rows import ReuseRow, reuse_rows_csv
from ..writable import check_file
from .pace import Pace

_COMMENT = """\
# A synthetic workload like {trace} ({num_requests:,} requests), written by `llmsim workload fit`.
#
# A request is a row of a table: lengths, how many blocks of {block_tokens} tokens of earlier prompts it reuses and how
# far back these lie. Each row is drawn once, in an order of chance, before any is drawn again; so are the gaps
# between arrivals, whose mean is set by `rate`.
# {reason}.
#
#   llmsim workload {scenario}
#   llmsim workload {scenario} --set workload.rate=8 --set run.seed=1
#   llmsim run {scenario}
"""


@dataclass(frozen=True, slots=True)
class FitFiles:
    """Where a fit goes."""

    scenario: Path

    @property
    def rows(self) -> Path:
        """The table of requests."""
        return self.scenario.with_name(f"{self.scenario.stem}.rows.csv")

    @property
    def gaps(self) -> Path:
        """The gaps between arrivals."""
        return self.scenario.with_name(f"{self.scenario.stem}.gaps.csv")

    def check(self, force: bool) -> None:
        """Raises ScenarioError where one is there and may not be replaced, or cannot be."""
        if self.scenario.suffix not in (".yaml", ".yml"):
            raise ScenarioError(self.scenario, None, "is to be a scenario: its name must end in .yaml")
        for path in (self.scenario, self.rows, self.gaps):
            if path.is_dir():
                raise ScenarioError(path, None, "is a folder")
            if os.path.lexists(path) and not force:
                raise ScenarioError(path, None, "exists already; choose another name, or --force to replace it")
            check_file(path, makes_parents=True)

    def write(
        self, fitted_to: Scenario, trace: str, rows: list[ReuseRow], pace: Pace, workload: dict[str, Any]
    ) -> None:
        """All of them. `workload` is what its section says beside tables and pace. Raises OSError."""
        section = {**workload, "rows": {"path": self.rows.name}, **pace.keys}
        self.scenario.parent.mkdir(parents=True, exist_ok=True)
        self.rows.write_text(reuse_rows_csv(rows), encoding="utf-8")
        if pace.gaps is None:
            self.gaps.unlink(missing_ok=True)
        else:
            section["gaps"] = {"path": self.gaps.name, "column": "gap"}
            self.gaps.write_text("\n".join(("gap", *map(str, pace.gaps.tolist()), "")), encoding="utf-8")
        raw = {"name": self._name(), **_surroundings(fitted_to, self.scenario.parent), "workload": section}
        comment = _COMMENT.format(
            trace=trace,
            num_requests=workload["requests"],
            block_tokens=workload["block_tokens"],
            reason=pace.reason[:1].upper() + pace.reason[1:],
            scenario=self.scenario.name,
        )
        body = yaml.safe_dump(raw, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
        self.scenario.write_text(comment + body, encoding="utf-8")

    def _name(self) -> str:
        """The file's name as a scenario may be called."""
        return re.sub(r"^[^A-Za-z0-9]+|[^A-Za-z0-9._-]+", "-", self.scenario.stem).lstrip("-._")[:100] or "fit"


def _surroundings(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """All that stands around the workload; its files as seen from another folder."""
    raw = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"name", "workload"})
    if is_config(scenario.model):
        raw["model"] = _seen_from(folder, scenario.path_to(scenario.model))
    hardware = scenario.hardware
    if hardware.gpu is not None and is_data_sheet(hardware.gpu):
        raw["hardware"]["gpu"] = _seen_from(folder, scenario.path_to(hardware.gpu))
    if hardware.profile is not None:
        raw["hardware"]["profile"] = _seen_from(folder, scenario.path_to(hardware.profile))
    return raw


def _seen_from(folder: Path, path: Path) -> str:
    return os.path.relpath(path.resolve(), folder.resolve())
