"""Generated traffic: a generator's drafts at the times that the pacing gives, and the turns that follow them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from typing import NamedTuple

from ...policies.core.request import Arrival, Prompt
from ..content_ids import unique_prompt
from ..schema_pacing import Pacing
from .arrivals import arrival_times
from .draft import Draft, Turn
from .request_making import make_arrival

NS_PER_S = 1_000_000_000


class _Session(NamedTuple):
    """A session with a request under way and turns to come."""

    number: int
    turn: int
    after: Turn
    """What follows the request."""
    draft: Draft
    arrival: Arrival


class GeneratedWorkload:
    """As many requests as the pacing asks for; what a session's next turn says follows from its last."""

    def __init__(self, pacing: Pacing, drafts: Callable[[], Iterator[Draft]], seed: int) -> None:
        """`drafts` gives a new iterator over the same drafts each time. Raises what making one raises."""
        self._pacing = pacing
        self._drafts = drafts
        self._seed = seed
        self._sessions: dict[str, _Session] = {}  # by the request that is under way
        drafts()

    def arrivals(self) -> Iterator[Arrival]:
        """What comes by itself, in order of time; a new iterator yields the same requests."""
        times = arrival_times(self._pacing, self._seed)
        if self._pacing.duration_s is not None:
            end_ns = round(self._pacing.duration_s * NS_PER_S)
            times = takewhile(lambda time_ns: time_ns < end_ns, times)
        for index, (time_ns, draft) in enumerate(zip(islice(times, self._pacing.count), self._drafts(), strict=False)):
            prompt = Prompt((*draft.shared, (unique_prompt(index), 0, draft.own_tokens)))
            yield self._arrival(index, 0, time_ns, prompt, draft.output_tokens, draft)

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """The session's next turn: all that was said, the answer as long as it really was, and something new."""
        session = self._sessions.pop(request_id, None)
        if session is None:
            return ()
        number, turn, after, draft, last = session
        answer = (last.request.output_content, 0, last.output.length)
        said = (unique_prompt(number, turn + 1), 0, after.own_tokens)
        prompt = Prompt.following(last.request.prompt, (answer, said))
        return (self._arrival(number, turn + 1, now_ns + after.pause_ns, prompt, after.output_tokens, draft),)

    def _arrival(self, index: int, turn: int, time_ns: int, prompt: Prompt, output: int, draft: Draft) -> Arrival:
        name = None if draft.turns is None else f"s{index:06d}"
        arrival = make_arrival(
            index, time_ns, prompt, output, draft.max_tokens, draft.tenant, name, draft.priority, turn
        )
        if draft.turns is not None and turn < len(draft.turns):
            self._sessions[arrival.request.id] = _Session(index, turn, draft.turns[turn], draft, arrival)
        return arrival
