"""Generated traffic: a generator's drafts at the times that the pacing gives, and the turns that follow them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from typing import NamedTuple

from ...policies.core.request import Arrival, Prompt
from ..content_ids import unique_prompt
from ..schema_pacing import Pacing
from .arrivals import paced_times
from .draft import Draft
from .request_making import make_arrival

NS_PER_S = 1_000_000_000


class _UnderWay(NamedTuple):
    """A request after whose end something may follow: a session's next turn, or a retry."""

    number: int
    turn: int
    retry: int
    draft: Draft
    arrival: Arrival
    output_tokens: int


class GeneratedWorkload:
    """As many requests as the pacing asks for; what a session's next turn says follows from its last."""

    def __init__(self, pacing: Pacing, drafts: Callable[[], Iterator[Draft]], seed: int) -> None:
        """`drafts` gives a new iterator over the same drafts each time. Raises what making one raises."""
        self._pacing = pacing
        self._drafts = drafts
        self._seed = seed
        self._under_way: dict[str, _UnderWay] = {}
        drafts()

    def arrivals(self) -> Iterator[Arrival]:
        """What comes by itself, in order of time; a new iterator yields the same requests."""
        times = paced_times(self._pacing, self._seed)
        if self._pacing.duration_s is not None:
            end_ns = round(self._pacing.duration_s * NS_PER_S)
            times = takewhile(lambda time_ns: time_ns < end_ns, times)
        for index, (time_ns, draft) in enumerate(zip(islice(times, self._pacing.count), self._drafts(), strict=False)):
            prompt = Prompt((*draft.shared, (unique_prompt(index), 0, draft.own_tokens)))
            yield self._arrival(index, 0, 0, time_ns, prompt, draft.output_tokens, draft)

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """The session's next turn: all that was said, the answer as long as it really was, and something new."""
        ended = self._under_way.pop(request_id, None)
        turns = ended.draft.turns or () if ended is not None else ()
        if ended is None or ended.turn == len(turns):
            return ()
        number, turn, _, draft, last, _ = ended
        after = turns[turn]
        answer = (last.request.output_content, 0, last.output.length)
        said = (unique_prompt(number, turn + 1), 0, after.own_tokens)
        prompt = Prompt.following(last.request.prompt, (answer, said))
        return (self._arrival(number, turn + 1, 0, now_ns + after.pause_ns, prompt, after.output_tokens, draft),)

    def on_give_up(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """The same request anew, after a wait that doubles; nothing after the last retry."""
        number, turn, retry, draft, last, output_tokens = self._under_way.pop(request_id)
        if draft.patience is None or retry == draft.patience.retries:
            return ()
        time_ns = now_ns + (draft.patience.backoff_ns << retry)
        return (self._arrival(number, turn, retry + 1, time_ns, last.request.prompt, output_tokens, draft),)

    def _arrival(
        self, number: int, turn: int, retry: int, time_ns: int, prompt: Prompt, output_tokens: int, draft: Draft
    ) -> Arrival:
        arrival = make_arrival(
            number,
            time_ns,
            prompt,
            output_tokens,
            draft.max_tokens,
            draft.tenant,
            None if draft.turns is None else f"s{number:06d}",
            draft.priority,
            turn,
            retry,
            None if draft.patience is None else draft.patience.timeout_ns,
            None if draft.deadline_in_ns is None else time_ns + draft.deadline_in_ns,
        )
        if draft.patience is not None or turn < len(draft.turns or ()):
            self._under_way[arrival.request.id] = _UnderWay(number, turn, retry, draft, arrival, output_tokens)
        return arrival
