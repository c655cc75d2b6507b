"""Where the records of a run go that nobody asks about."""

from __future__ import annotations

from ..policies.core.records import EventRecord, RequestRecord, StepRecord


class Unrecorded:
    """A recorder that forgets."""

    def on_step(self, record: StepRecord) -> None:
        """Forget it."""

    def on_gap(self, gap_ns: int, count: int) -> None:
        """Forget it."""

    def on_request(self, record: RequestRecord) -> None:
        """Forget it."""

    def on_event(self, record: EventRecord) -> None:
        """Forget it."""
