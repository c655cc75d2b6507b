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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from .. import registry
from ..errors import PolicyError
from ..finding import HERE, file_of, source_digest
from .config import EngineConfig, Policies
from .engine import EngineCore
from .estimates import ForetoldEstimator, HeardEstimator
from .estimator import StepTimeEstimator
from .plan import StepEvents, StepPlan, StepResult
from .request import Arrival, Prompt, Request

FORMAT = 1
Specs = Mapping[str, Mapping[str, Any]]


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
        entry: dict[str, Any] = {"call": "plan", "now_ns": plan.now_ns, "digest": _digest(plan)}
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
            entry["finished"] = _finished(events)
        self._write(entry)


def _digest(plan: StepPlan) -> str:
    return hashlib.blake2b(plan.digest().encode(), digest_size=8).hexdigest()


def _finished(events: StepEvents) -> list[list[Any]]:
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


Entry = dict[str, Any]
_OPTIONAL = ("priority", "ignore_eos", "tenant", "session", "deadline_ns", "predicted_tokens")
"""What an `add` holds of a request only where it is not the default."""
Call = Callable[[], str | None]
"""A call of the core; returns in what the outcome differs from the journal's, or None."""

_MALFORMED = (KeyError, TypeError, ValueError, IndexError, AttributeError)
"""What an entry raises that lacks a key, or holds a value of another kind."""


class Replay:
    """A journal fed to a fresh core; each plan and each finish is compared with what was written.

    Raises JournalError for a malformed entry, which names `source` and the line.
    """

    def __init__(
        self,
        entries: Iterator[dict[str, Any]],
        source: str = "journal",
        folders: Iterable[Path] = HERE,
        on_plan: Callable[[StepPlan], None] | None = None,
    ) -> None:
        """`folders`: where files of policies are looked for; they must be those of the run.

        `on_plan` is called with each plan of the run's that is as in the journal, right after it was made.
        """
        engine = next(entries)
        self._entries = entries
        self._source = source
        self._on_plan = on_plan
        self._estimator = ForetoldEstimator()
        try:
            specs = engine["policies"]
            _check_sources(specs, engine.get("sources", {}), folders)
            config, folders = EngineConfig(**engine["config"]), tuple(folders)
            self._cores = (EngineCore(config, Policies.of(specs, folders, self._estimator)) for _ in count())
            self.core = next(self._cores)
        except PolicyError as error:
            raise JournalError(f"{source}: line 1: policies: {error}") from error
        except _MALFORMED as error:
            raise self._malformed(1, error) from None
        self._before: EngineCore | None = None
        """The core of a pass before the run, as long as its calls come."""
        self.num_plans = 0
        """Of the run."""
        self.num_finished = 0

    def run(self) -> str | None:
        """Feed all entries; returns the first difference, or None."""
        for number, entry in enumerate(self._entries, 2):
            if entry.get("call") == "end":
                return None
            try:
                call = self._call(entry)
            except _MALFORMED as error:
                raise self._malformed(number, error) from None
            difference = call()  # what the core raises is a bug of its own, not the entry's
            if difference is not None:
                return f"line {number}: {difference}"
        raise JournalError(f"{self._source}: ends in the middle of the run")

    def _malformed(self, line: int, error: Exception) -> JournalError:
        return JournalError(f"{self._source}: line {line}: malformed entry: {error!r}")

    def _call(self, entry: Entry) -> Call:
        if entry["call"] == "before":
            return self._earlier(entry["entry"])
        if entry["call"] == "take_over":
            return self._take_over
        return self._of(entry, self.core)

    def _earlier(self, entry: Entry) -> Call:
        """A call of the core that served a pass before the run."""
        if self._before is None:
            self._before = next(self._cores)
        return self._of(entry, self._before)

    def _take_over(self) -> str | None:
        if self._before is None or self._before.sequences or self.core.num_steps or self.core.sequences:
            return "a cache is taken over that is none, or is in use"
        self.core.take_over_cache(self._before)
        self._before = None
        return None

    def _of(self, entry: Entry, core: EngineCore) -> Call:
        calls = {"add": self._add, "abort": self._abort, "plan": self._plan, "commit": self._commit}
        return calls[entry["call"]](entry, core)

    # Each reads an entry and returns the call of a core that it stands for.

    def _add(self, entry: Entry, core: EngineCore) -> Call:
        optional = {key: entry[key] for key in _OPTIONAL if key in entry}
        spans = entry["spans"]
        literal = len(spans) == 1 and isinstance(spans[0][0], list)
        prompt = Prompt.of_tokens(spans[0][0]) if literal else Prompt(tuple(span) for span in spans)
        numbers = [_whole(entry[key]) for key in ("arrival_ns", "max_tokens", "output_content")]
        _whole(optional.get("priority", 0))
        request = Request(_text(entry["id"]), numbers[0], prompt, numbers[1], numbers[2], **optional)
        now_ns = _whole(entry["now_ns"])

        def call() -> str | None:
            if request.id in core.sequences:
                return f"a second request {request.id}"
            core.add_request(request, now_ns)
            return None

        return call

    def _abort(self, entry: Entry, core: EngineCore) -> Call:
        request_id, now_ns = _text(entry["id"]), _whole(entry["now_ns"])

        def call() -> None:
            core.abort(request_id, now_ns)

        return call

    def _plan(self, entry: Entry, core: EngineCore) -> Call:
        now_ns, digest = _whole(entry["now_ns"]), entry["digest"]
        estimates = [(_whole(device_ns), _whole(host_ns)) for device_ns, host_ns in entry.get("estimates", ())]

        def call() -> str | None:
            if len(core.in_flight) == core.config.depth:
                return "a plan too many in flight"
            self._estimator.foretell(estimates)
            plan = core.plan_step(now_ns)
            self.num_plans += core is self.core
            if self._estimator.num_missing:
                return f"policies ask for {self._estimator.num_missing} estimates more than in the journal"
            if plan is None:
                return "nothing to plan where the journal has a plan"
            if _digest(plan) != digest:
                return f"step {plan.step} differs: {plan.digest()}"
            if self._on_plan is not None and core is self.core:
                self._on_plan(plan)
            return None

        return call

    def _commit(self, entry: Entry, core: EngineCore) -> Call:
        stopped = [_text(request_id) for request_id in entry.get("stopped", [])]
        accepted = {key: _whole(count) for key, count in entry.get("accepted", {}).items()}
        tokens = {key: [_whole(token) for token in new] for key, new in entry.get("tokens", {}).items()}
        result = StepResult(0, stopped, accepted, tokens or None)
        now_ns, want = _whole(entry["now_ns"]), entry.get("finished", [])

        def call() -> str | None:
            if not core.in_flight:
                return "a commit without a plan"
            events = core.commit_step(core.in_flight[0], result, now_ns)
            self.num_finished += len(events.finished) if core is self.core else 0
            got = _finished(events)
            return None if want == got else f"finished {got}, the journal has {want}"

        return call


def _check_sources(specs: Specs, sources: Mapping[str, str], folders: Iterable[Path]) -> None:
    """Policies that are none of the house's are what they were. Raises PolicyError."""
    for kind, digest in sources.items():
        name = str(specs[kind]["name"])
        if name.rpartition(":")[0].endswith(".py") and file_of(name, folders) is None:
            raise PolicyError("name", f"there is no file {name.rpartition(':')[0]}; --from says where it lies")
        if source_digest(registry.find(kind, name, folders)) != digest:
            raise PolicyError("name", f"{name} has changed since the journal was written")


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
