"""Puts a request together: its id, its own content, what it asks for, and whether it can be served at all."""

from __future__ import annotations

from typing import Literal

from ...policies.core.request import Arrival, Output, Prompt, Request
from ..content_ids import output_content
from ..errors import ScenarioError
from ..schema_pacing import FactorMaxTokens, FixedMaxTokens
from .lengths import max_tokens_for

LATEST_NS = 100 * 365 * 24 * 3600 * 1_000_000_000
"""A run's nanoseconds must fit 64 bits, which hold 292 years: this leaves it time to end."""


def make_arrival(
    index: int,
    time_ns: int,
    prompt: Prompt,
    output_tokens: int,
    max_tokens: Literal["exact"] | FixedMaxTokens | FactorMaxTokens = "exact",
    tenant: str | None = None,
    session: str | None = None,
    priority: int = 0,
    turn: int = 0,
    retry: int = 0,
    patience_ns: int | None = None,
    deadline_ns: int | None = None,
) -> Arrival:
    """The `index`-th request (from 0), with a refusal where it has no prompt or no output; or a later turn of it, or a
    retry.

    Its true output is what it would generate without a limit, cut at what it asks for. Raises ScenarioError for a
    time of more than 100 years.
    """
    if time_ns > LATEST_NS:
        raise ScenarioError(None, "workload", f"request {index + 1:,} would arrive after more than 100 years")
    asked = output_tokens if max_tokens == "exact" else max_tokens_for(max_tokens, output_tokens)
    request = Request(
        id=f"r{index:06d}" + f".{turn}" * (turn > 0) + f"+{retry}" * (retry > 0),
        arrival_ns=time_ns,
        prompt=prompt,
        max_tokens=asked,
        output_content=output_content(index, turn, retry),
        tenant=tenant,
        session=session,
        priority=priority,
        deadline_ns=deadline_ns,
    )
    output = Output(min(output_tokens, asked))
    return Arrival(time_ns, request, output, _refusal(prompt, output_tokens), patience_ns)


def _refusal(prompt: Prompt, output_tokens: int) -> str | None:
    if prompt.num_tokens == 0:
        return "the prompt is empty"
    return "the output is empty" if output_tokens == 0 else None
