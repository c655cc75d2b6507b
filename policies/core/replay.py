"""A journal fed to a fresh core, which must do the same: every plan and every token time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

from .. import registry
from ..errors import PolicyError
from ..finding import HERE, file_of, source_digest
from .config import EngineConfig, Policies
from .engine import EngineCore
from .estimates import ForetoldEstimator
from .journal import OPTIONAL, JournalError, Specs, digest_of, finished_of
from .plan import StepPlan, StepResult
from .request import Prompt, Request

Entry = dict[str, Any]
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
        watched: Callable[[EngineCore], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """`folders`: where files of policies are looked for; they must be those of the run.

        `on_plan` is called with each plan of the run's that is as in the journal, right after it was made. What a core
        is asked to do is done within `watched(core)`, for the run's as for that of a pass before it.
        """
        engine = next(entries)
        self._entries = entries
        self._source = source
        self._on_plan = on_plan
        self._watched = watched
        self._watch = ExitStack()
        self._in_use: EngineCore | None = None
        """The core that is watched."""
        self._estimator = ForetoldEstimator()
        try:
            self._specs, self._folders = engine["policies"], tuple(folders)
            _check_sources(self._specs, engine.get("sources", {}), self._folders)
            self._config = EngineConfig(**engine["config"])
            self.core = self._new_core()
        except PolicyError as error:
            raise JournalError(f"{source}: line 1: policies: {error}") from error
        except _MALFORMED as error:
            raise self._malformed(1, error) from None
        self._before: EngineCore | None = None
        """The core of a pass before the run, as long as its calls come."""
        self.num_plans = 0
        """Of the run."""
        self.num_finished = 0

    def _new_core(self) -> EngineCore:
        return EngineCore(self._config, Policies.of(self._specs, self._folders, self._estimator))

    def run(self) -> str | None:
        """Feed all entries; returns the first difference, or None."""
        with self._watch:
            return self._fed()

    def _fed(self) -> str | None:
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
            self._before = self._new_core()
        return self._of(entry, self._before)

    def _take_over(self) -> str | None:
        if self._before is None or self._before.sequences or self.core.num_steps or self.core.sequences:
            return "a cache is taken over that is none, or is in use"
        self.core.take_over_cache(self._before)
        self._before = None
        return None

    def _of(self, entry: Entry, core: EngineCore) -> Call:
        if core is not self._in_use:
            self._watch.close()
            self._watch.enter_context(self._watched(core))
            self._in_use = core
        calls = {"add": self._add, "abort": self._abort, "plan": self._plan, "commit": self._commit}
        return calls[entry["call"]](entry, core)

    # Each reads an entry and returns the call of a core that it stands for.

    def _add(self, entry: Entry, core: EngineCore) -> Call:
        optional = {key: entry[key] for key in OPTIONAL if key in entry}
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
            if digest_of(plan) != digest:
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
            got = finished_of(events)
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
