"""Requests that share nothing: no prefix is ever hit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...policies.core.request import Arrival, Prompt
from ..content_ids import unique_prompt
from ..schema_workload import IndependentSettings
from .arrivals import arrival_times
from .lengths import lengths
from .priorities import priorities
from .request_making import make_arrival


class IndependentWorkload:
    """Prompts of their own content, arriving by themselves."""

    def __init__(self, settings: IndependentSettings, seed: int) -> None:
        self._settings = settings
        self._seed = seed

    def arrivals(self) -> Iterator[Arrival]:
        """All requests in order of time; a new iterator yields the same ones."""
        asked, seed = self._settings, self._seed
        times = arrival_times(asked.arrivals, asked.rate, seed)
        prompts = lengths(asked.prompt_tokens, seed, "prompt_tokens")
        outputs = lengths(asked.output_tokens, seed, "output_tokens")
        draws = zip(range(asked.requests), times, prompts, outputs, priorities(asked.priorities, seed), strict=False)
        for index, time_ns, prompt, output, priority in draws:
            content = Prompt(((unique_prompt(index), 0, prompt),))
            yield make_arrival(index, time_ns, content, output, asked.max_tokens, priority=priority)

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """Nothing: the traffic does not react."""
        return ()
