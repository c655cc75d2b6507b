"""From a generator's settings to its drafts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import assert_never

from ..schema_generators import AgentSettings, IndependentSettings
from ..schema_workload import GeneratedSettings
from .agent import agent_drafts
from .draft import Draft
from .independent import independent_drafts
from .priorities import priorities


def drafts(settings: GeneratedSettings, seed: int) -> Iterator[Draft]:
    """The drafts of a generator, without end. Raises ScenarioError where a file of lengths is missing or wrong."""
    return _asking(settings, seed, count())


def _asking(settings: GeneratedSettings, seed: int, contents: Iterator[int]) -> Iterator[Draft]:
    """Drafts with what their clients ask for; `contents` names what requests share."""
    rule, urgency = settings.max_tokens, priorities(settings.priorities, seed)
    plain = _plain(settings, seed, contents)
    return (draft._replace(max_tokens=rule, priority=priority) for draft, priority in zip(plain, urgency, strict=False))


def _plain(settings: GeneratedSettings, seed: int, contents: Iterator[int]) -> Iterator[Draft]:
    if isinstance(settings, AgentSettings):
        return agent_drafts(settings, seed, contents)
    if isinstance(settings, IndependentSettings):
        return independent_drafts(settings, seed)
    assert_never(settings)
