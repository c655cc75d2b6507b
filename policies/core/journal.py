"""The journal: the ordered log of core calls, enough to feed a fresh core and compare every plan and token time.

One JSON object a line, gzipped. The first describes the engine; then `add`, `abort`, `plan` and `commit` as they
came, and `end`. Whichever engine wrote a journal, `replay` must get identical plans and token times: what differs
is a bug.

Where a run begins with the cache of an engine that has served a pass of the traffic before, that one's calls come
first, each as the `entry` of a `before`, and after them `take_over`. All other entries are the run's own.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .config import EngineConfig
from .estimates import HeardEstimator
from .estimator import StepTimeEstimator
from .plan import StepEvents, StepPlan, StepResult
from .request import Arrival

FORMAT = 1
Specs = Mapping[str, Mapping[str, Any]]
OPTIONAL = ("priority", "ignore_eos", "tenant", "session", "deadline_ns", "predicted_tokens")
"""What an `add` holds of a request only where it is not the default."""


class JournalError(ValueError):
    """A journal cannot be read. The message names the line."""


class JournalWriter:
    """Writes a journal as the calls come. Close it, or use it as a context manager."""

    def __init__(
        self, path: Path, config: EngineConfig, policies: Specs, version: str, sources: Mapping[str, str] | None = None
    ) -> None:
        """`sources`: by kind, the SHA-256 of the file of each policy that is none of the house's."""
        self._raw = path.open("wb")
        # No file name and no time in the header: the same run writes the same bytes.
        self._file = gzip.GzipFile(filename="", fileobj=self._raw, mode="wb", mtime=0, compresslevel=1)
        self._estimator: HeardEstimator | None = None
        self._is_before = False
        engine: dict[str, Any] = {"format": FORMAT, "version": version, "config": asdict(config), "policies": policies}
        self._write(engine | ({"sources": sources} if sources else {}))

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish the file: a journal without its `end` was cut."""
        self._is_before = False
        self._write({"call": "end"})
        self._file.close()
        self._raw.close()

    def begin_before(self) -> None:
        """The calls that follow are of another core, which serves a pass of the traffic before the run."""
        self._is_before = True

    def taken_over(self) -> None:
        """The run's core has taken over that one's cache; the calls that follow are its own."""
        self._is_before = False
        self._write({"call": "take_over"})

    def _write(self, entry: Mapping[str, Any]) -> None:
        if self._is_before:
            entry = {"call": "before", "entry": entry}
        self._file.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")

    def hear(self, estimator: StepTimeEstimator) -> StepTimeEstimator:
        """The estimator to give to the core's policies: what it answers them is written down."""
        self._estimator = HeardEstimator(estimator)
        return self._estimator

    def added(self, arrival: Arrival, now_ns: int) -> None:
        """A request was given to the core (one that was refused on its way was not)."""
        request = arrival.request
        if arrival.refusal is not None:
            return
        entry = {
            "call": "add",
            "now_ns": now_ns,
            "id": request.id,
            "arrival_ns": request.arrival_ns,
            "spans": request.prompt.spans(),
            "max_tokens": request.max_tokens,
            "output_content": request.output_content,
        }
        if request.priority:
            entry["priority"] = request.priority
        if request.ignore_eos:
            entry["ignore_eos"] = True
        for key in ("tenant", "session", "deadline_ns", "predicted_tokens"):
            if getattr(request, key) is not None:
                entry[key] = getattr(request, key)
        self._write(entry)

    def aborted(self, request_id: str, now_ns: int) -> None:
        """A request was aborted."""
        self._write({"call": "abort", "now_ns": now_ns, "id": request_id})

    def planned(self, plan: StepPlan) -> None:
        """A step was planned."""
        entry: dict[str, Any] = {"call": "plan", "now_ns": plan.now_ns, "digest": digest_of(plan)}
        if self._estimator is not None and (answers := self._estimator.take()):
            entry["estimates"] = answers
        self._write(entry)

    def committed(self, plan: StepPlan, result: StepResult, events: StepEvents, now_ns: int) -> None:
        """A step was committed."""
        entry: dict[str, Any] = {"call": "commit", "now_ns": now_ns}
        if result.stopped:
            entry["stopped"] = list(result.stopped)
        if result.accepted:
            entry["accepted"] = dict(result.accepted)
        if result.tokens:
            entry["tokens"] = dict(result.tokens)
        if events.finished:
            entry["finished"] = finished_of(events)
        self._write(entry)


def digest_of(plan: StepPlan) -> str:
    """What a plan decided, in sixteen characters."""
    return hashlib.blake2b(plan.digest().encode(), digest_size=8).hexdigest()


def finished_of(events: StepEvents) -> list[list[Any]]:
    """Who finished, with the times of the first and the last token and their number."""
    records = [sequence.record for sequence in events.finished]
    return [[r.request_id, r.first_token_ns, r.last_token_ns, r.output_tokens] for r in records]


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """The entries of a journal, the engine's description first. Raises JournalError for a file that is none."""
    number = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                entry = _json(line, f"{path}: line {number}")
                if not isinstance(entry, dict) or (number == 1 and entry.get("format") != FORMAT):
                    raise JournalError(f"{path}: line {number}: not a journal of format {FORMAT}")
                yield entry
    except FileNotFoundError:
        raise JournalError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise JournalError(f"{path}: is a folder, not a journal") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise JournalError(f"{path}: line {number + 1}: {error}") from None
    if number == 0:
        raise JournalError(f"{path}: the file is empty")


def _json(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise JournalError(f"{where}: is not JSON: {error}") from None
