"""Agents of several tenants: a prompt is system prompt + tools + repository context + a question of its own.

| system (tenant) | tools (tenant) | repository (tenant, repository) | question (request) |
  hit by every request of the tenant  hit by those on the repository    never hit
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..schema_generators import AgentSettings
from .draft import Draft, Span
from .draws import zipf_ranks
from .lengths import lengths


def agent_drafts(asked: AgentSettings, seed: int, contents: Iterator[int]) -> Iterator[Draft]:
    """Requests without end: tenants by Zipf, and their repositories by Zipf; what they share is drawn once."""
    tenants, repositories = asked.tenants, asked.repositories
    systems = spans(contents, lengths(asked.system_tokens, seed, "system_tokens"), tenants)
    tools = spans(contents, lengths(asked.tools_tokens, seed, "tools_tokens"), tenants)
    contexts = spans(contents, lengths(asked.repository_tokens, seed, "repository_tokens"), tenants * repositories)
    names = [f"tenant-{rank}" for rank in range(tenants)]
    draws = zip(
        zipf_ranks(seed, "tenant", tenants, asked.tenant_zipf),
        zipf_ranks(seed, "repository", repositories, asked.repository_zipf),
        lengths(asked.question_tokens, seed, "question_tokens"),
        lengths(asked.output_tokens, seed, "output_tokens"),
        strict=False,
    )
    return (
        Draft((systems[t], tools[t], contexts[t * repositories + repository]), question, output, names[t])
        for t, repository, question, output in draws
    )


def spans(contents: Iterator[int], tokens: Iterator[int], num_spans: int) -> list[Span]:
    """The next `num_spans` contents, whole, each of the next length."""
    return [(next(contents), 0, length) for length in islice(tokens, num_spans)]
