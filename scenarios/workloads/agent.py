"""Agents of several tenants: a prompt is system prompt + tools + repository context + a question of its own.

| system (tenant) | tools (tenant) | repository (tenant, repository) | question (request) |
  hit by every request of the tenant  hit by those on the repository    never hit
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from ...policies.core.request import Arrival, Prompt
from ..content_ids import unique_prompt
from ..schema_workload import AgentSettings
from .arrivals import arrival_times
from .draws import zipf_ranks
from .lengths import lengths
from .priorities import priorities
from .request_making import make_arrival

Span = tuple[int, int, int]


class AgentWorkload:
    """Tenants by Zipf, and their repositories by Zipf; what they share is drawn once, here."""

    def __init__(self, settings: AgentSettings, seed: int) -> None:
        self._settings = settings
        self._seed = seed
        tenants, repositories = settings.tenants, settings.repositories
        contents = iter(range(tenants * (2 + repositories)))  # one name for each shared part
        self._systems = _spans(contents, lengths(settings.system_tokens, seed, "system_tokens"), tenants)
        self._tools = _spans(contents, lengths(settings.tools_tokens, seed, "tools_tokens"), tenants)
        contexts = lengths(settings.repository_tokens, seed, "repository_tokens")
        self._repositories = _spans(contents, contexts, tenants * repositories)
        self._tenants = [f"tenant-{rank}" for rank in range(tenants)]

    def arrivals(self) -> Iterator[Arrival]:
        """All requests in order of time; a new iterator yields the same ones."""
        asked, seed = self._settings, self._seed
        draws = zip(
            range(asked.requests),
            arrival_times(asked.arrivals, asked.rate, seed),
            zipf_ranks(seed, "tenant", asked.tenants, asked.tenant_zipf),
            zipf_ranks(seed, "repository", asked.repositories, asked.repository_zipf),
            lengths(asked.question_tokens, seed, "question_tokens"),
            lengths(asked.output_tokens, seed, "output_tokens"),
            priorities(asked.priorities, seed),
            strict=False,
        )
        for index, time_ns, tenant, repository, question, output, priority in draws:
            prompt = self._prompt(tenant, repository, (unique_prompt(index), 0, question))
            name = self._tenants[tenant]
            yield make_arrival(index, time_ns, prompt, output, asked.max_tokens, name, priority=priority)

    def _prompt(self, tenant: int, repository: int, question: Span) -> Prompt:
        context = self._repositories[tenant * self._settings.repositories + repository]
        return Prompt((self._systems[tenant], self._tools[tenant], context, question))

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """Nothing: the traffic does not react."""
        return ()


def _spans(contents: Iterator[int], tokens: Iterator[int], num_spans: int) -> list[Span]:
    """The next `num_spans` contents, whole, each of the next length."""
    return [(next(contents), 0, length) for length in islice(tokens, num_spans)]
