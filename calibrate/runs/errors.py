"""The error that a measured run raises which cannot be read, or says too little."""

from __future__ import annotations

from pathlib import Path


class RunError(ValueError):
    """One line when printed: `run/vllm_requests.jsonl: line 17: queued_ts: …`.

    file     the file at fault
    where    the row and field, None where the whole file is meant
    message  what is wrong, and what would be right
    """

    def __init__(self, file: Path, where: str | None, message: str) -> None:
        super().__init__(file, where, message)
        self.file = file
        self.where = where
        self.message = message

    def __str__(self) -> str:
        return " ".join(": ".join(str(part) for part in (self.file, self.where, self.message) if part).split())
