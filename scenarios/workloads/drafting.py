"""From a generator's settings to its drafts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import assert_never

from ..schema_generators import (
    AgentSettings,
    FewShotSettings,
    IndependentSettings,
    PrefixReuseSettings,
    RagSettings,
    SharedPrefixSettings,
)
from ..schema_sessions import MixtureSettings, MultiTurnSettings, Part, SingleTraffic
from ..schema_workload import GeneratedSettings
from .agent import agent_drafts
from .draft import Draft, Patience
from .draws import derived_seed, weighted
from .few_shot import few_shot_drafts
from .independent import independent_drafts
from .multi_turn import multi_turn_drafts
from .prefix_reuse import prefix_reuse_drafts
from .priorities import priorities
from .rag import rag_drafts
from .shared_prefix import shared_prefix_drafts


def drafts(settings: GeneratedSettings, seed: int) -> Iterator[Draft]:
    """The drafts of a generator, without end. Raises ScenarioError where a file of lengths is missing or wrong."""
    contents = count()  # names what requests share: no two parts of a mixture the same
    if not isinstance(settings, MixtureSettings):
        return _asking(settings, seed, contents)
    parts = [_part(part, derived_seed(seed, f"part {place}"), contents) for place, part in enumerate(settings.parts)]
    return (next(parts[place]) for place in weighted(seed, "part", [part.weight for part in settings.parts]))


def _part(part: Part, seed: int, contents: Iterator[int]) -> Iterator[Draft]:
    """Drafts of a tenant, which may have tenants of its own."""
    return (
        draft._replace(tenant=part.tenant if draft.tenant is None else f"{part.tenant}/{draft.tenant}")
        for draft in _asking(part.workload, seed, contents)
    )


def _asking(settings: SingleTraffic, seed: int, contents: Iterator[int]) -> Iterator[Draft]:
    """Drafts with what their clients ask for."""
    patience = _patience(settings)
    rule, urgency = settings.max_tokens, priorities(settings.priorities, seed)
    plain = _plain(settings, seed, contents)
    deadline_in_ns = None if settings.deadline_s is None else round(settings.deadline_s * 1e9)
    told = patience is None and deadline_in_ns is None
    if rule == "exact" and told and [choice.priority for choice in settings.priorities] == [0]:
        return plain  # what drafts ask for by themselves
    return (
        draft._replace(max_tokens=rule, priority=priority, patience=patience, deadline_in_ns=deadline_in_ns)
        for draft, priority in zip(plain, urgency, strict=False)
    )


def _patience(settings: SingleTraffic) -> Patience | None:
    if settings.timeout_s is None:
        return None
    return Patience(round(settings.timeout_s * 1e9), settings.retries, round(settings.backoff_s * 1e9))


def _plain(settings: SingleTraffic, seed: int, contents: Iterator[int]) -> Iterator[Draft]:
    match settings:
        case AgentSettings():
            return agent_drafts(settings, seed, contents)
        case IndependentSettings():
            return independent_drafts(settings, seed)
        case FewShotSettings():
            return few_shot_drafts(settings, seed, contents)
        case PrefixReuseSettings():
            return prefix_reuse_drafts(settings, seed, contents)
        case RagSettings():
            return rag_drafts(settings, seed, contents)
        case SharedPrefixSettings():
            return shared_prefix_drafts(settings, seed, contents)
        case MultiTurnSettings():
            return multi_turn_drafts(settings, seed, contents)
        case _:
            assert_never(settings)
