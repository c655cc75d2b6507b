"""Plays a trace of sessions: they begin at a rate, and what follows within one waits for what came before.

A request's id, prompt and output belong to its place in the file, not to when it is sent: two runs that differ in a
policy see the same requests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from ...policies.core.request import Arrival
from ..errors import ScenarioError
from ..schema_pacing import MaxTokens
from ..schema_workload import TEXT_FORMATS, TraceSettings
from ..traces.formats import session_reader
from ..traces.sessions import TraceSession
from ..traces.text import CHARS_PER_TOKEN, estimate_note
from .arrivals import arrival_times
from .request_making import make_arrival


class SessionTraceWorkload:
    """Sessions, read once to check them and once more to play them; only those under way are in memory."""

    def __init__(self, settings: TraceSettings, path: Path, seed: int, warn: Callable[[str], None]) -> None:
        """Checks all sessions that will be played: ScenarioError names file, session and field.

        `warn` gets a sentence where sessions have nothing to send, and where lengths are estimates.
        """
        self._settings = settings
        self._path = path
        self._seed = seed
        self._under_way: dict[str, tuple[_Playing, int]] = {}
        num_calls = [len(session.calls) for session in self._sessions()]
        if not any(num_calls):
            raise ScenarioError(path, None, "no session of the trace has a request")
        if num_empty := num_calls.count(0):
            warn(f"{path}: {num_empty} of {len(num_calls)} sessions have no request and are left out")
        if settings.format in TEXT_FORMATS:
            warn(f"{path}: {estimate_note(settings.chars_per_token or CHARS_PER_TOKEN)}")

    def arrivals(self) -> Iterator[Arrival]:
        """The first requests of all sessions, in order of time; begins anew, and what was under way is forgotten."""
        asked = self._settings
        assert asked.rate is not None  # the schema sees to it
        self._under_way = {}
        sessions = (session for session in self._sessions() if session.calls)
        times = arrival_times(asked.arrivals or "poisson", asked.rate, self._seed)
        for time_ns, session in zip(times, sessions, strict=False):
            playing = _Playing(session, asked.max_tokens)
            yield from self._noted(playing, playing.begin(time_ns))

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """The calls of the session that waited for this one, and for no other any more."""
        playing, position = self._under_way.pop(request_id)
        return list(self._noted(playing, playing.follow(position, now_ns)))

    def _noted(self, playing: _Playing, sent: Iterable[tuple[int, Arrival]]) -> Iterator[Arrival]:
        for position, arrival in sent:
            self._under_way[arrival.request.id] = (playing, position)
            yield arrival

    def _sessions(self) -> Iterator[TraceSession]:
        return islice(session_reader(self._settings)(self._path), self._settings.limit)


class _Playing:
    """One session under way: which of its calls have ended, and which wait for them."""

    def __init__(self, session: TraceSession, max_tokens: MaxTokens) -> None:
        self._session = session
        self._max_tokens = max_tokens
        self._followers: defaultdict[int, list[int]] = defaultdict(list)
        self._num_awaited = [len(call.after) for call in session.calls]
        self._earliest_ns = [0] * len(session.calls)
        for position, call in enumerate(session.calls):
            for before, _ in call.after:
                self._followers[before].append(position)

    def begin(self, now_ns: int) -> Iterator[tuple[int, Arrival]]:
        """The calls that wait for nothing."""
        for position, num_awaited in enumerate(self._num_awaited):
            if num_awaited == 0:
                yield position, self._arrival(position, now_ns)

    def follow(self, ended: int, now_ns: int) -> Iterator[tuple[int, Arrival]]:
        """The calls for which the end of call `ended` was the last thing to wait for."""
        for position in self._followers.pop(ended, ()):
            delay_ns = dict(self._session.calls[position].after)[ended]
            self._earliest_ns[position] = max(self._earliest_ns[position], now_ns + delay_ns)
            self._num_awaited[position] -= 1
            if self._num_awaited[position] == 0:
                yield position, self._arrival(position, self._earliest_ns[position])

    def _arrival(self, position: int, time_ns: int) -> Arrival:
        session, call = self._session, self._session.calls[position]
        index = session.first_index + position
        rule, name = self._max_tokens, session.name
        return make_arrival(index, time_ns, call.prompt, call.output_tokens, rule, session=name)
