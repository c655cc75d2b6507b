"""A figure, what it must be, and whether it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report."""

    part: str
    name: str
    value: float
    must: float | None = None
    """Least that is acceptable, or most with `at_most`; None: only told."""
    aim: float | None = None
    at_most: bool = False
    note: str = ""

    @property
    def has_passed(self) -> bool | None:
        """None where nothing is asked."""
        if self.must is None:
            return None
        return self.value <= self.must if self.at_most else self.value >= self.must

    def row(self) -> list[str]:
        """As text, for a table."""
        verdict = {True: "passed", False: "fell short", None: ""}[self.has_passed]
        bound = "" if self.must is None else f"{'<=' if self.at_most else '>='} {self.must:g}"
        aim = "" if self.aim is None else f"{self.aim:g}"
        return [self.part, self.name, f"{self.value:.4g}", bound, aim, verdict, self.note]

    def as_json(self) -> dict[str, Any]:
        """As it stands in the report."""
        fields = {name: getattr(self, name) for name in ("part", "name", "value", "must", "aim", "at_most", "note")}
        return fields | {"passed": self.has_passed}
