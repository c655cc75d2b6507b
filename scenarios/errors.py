"""The one error that a user's mistake raises."""

from __future__ import annotations

from pathlib import Path


class ScenarioError(ValueError):
    """A user's mistake, one line when printed: `scenarios/agent.yaml: model: 'lama' is unknown; choose …`.

    file     the YAML or trace at fault, None where there is none (a key given by code)
    where    the key's path, or `line 17: input_length`; None where the whole file is meant
    message  what is wrong, with the value and what would be right
    """

    def __init__(self, file: str | Path | None, where: str | None, message: str) -> None:
        super().__init__(file, where, message)
        self.file = file
        self.where = where
        self.message = message

    def __str__(self) -> str:
        parts = [str(part) for part in (self.file, self.where, self.message) if part]
        return " ".join(": ".join(parts).split())
