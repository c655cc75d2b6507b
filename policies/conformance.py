"""Whether a class is a policy: it has the methods of its kind's protocol and requires what there is to require."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import FunctionType

from . import protocols

PROTOCOLS: Mapping[str, type] = {
    "batching": protocols.BatchingPolicy,
    "scheduling": protocols.SchedulingPolicy,
    "preemption": protocols.PreemptionPolicy,
    "chunk_size": protocols.ChunkSizePolicy,
    "eviction": protocols.EvictionPolicy,
}
"""The kinds of policies, in the order in which they are listed."""

FEATURES: Mapping[str, str] = {
    "prefix_index": "an index of cached prefixes",
    "radix_tree": "a radix tree as prefix index",
    "chunked_prefill": "prompts that may be computed in chunks",
    "mixed_steps": "steps that hold prefill and decodes together",
    "prediction": "a prediction of each request's output length",
    "deadline": "deadlines of requests",
    "tenant": "requests of several tenants",
    "step_time": "an estimate of what a step costs",
}
"""What a policy may require, beside another policy (`batching.prefill_first`), and what it is."""


def methods(kind: str) -> Mapping[str, FunctionType]:
    """The methods that a policy of this kind must have, as the protocol has them."""
    public = {name: value for name, value in vars(PROTOCOLS[kind]).items() if not name.startswith("_")}
    return {name: value for name, value in public.items() if isinstance(value, FunctionType)}


def complaint(kind: str, policy: type) -> str | None:
    """Why a class is no policy of this kind, in one line; None if it is one."""
    for name, wanted in methods(kind).items():
        has = inspect.getattr_static(policy, name, None)
        taken = list(inspect.signature(wanted).parameters)[1:]
        call = f"{name}({', '.join(taken)})"
        if has is None or has is wanted:
            return f"{policy.__name__} lacks {call}, which a policy of kind {kind} has"
        if not _takes(policy, name, len(taken)):
            return f"{policy.__name__}.{name} must take ({', '.join(taken)})"
    if "step_time" in requirements(policy) and not callable(getattr(policy, "use_estimator", None)):
        return f"{policy.__name__} requires step_time and lacks use_estimator(estimator)"
    return _wrong_requirement(policy)


def kinds_of(policy: type) -> list[str]:
    """The kinds of which a class is a policy."""
    return [kind for kind in PROTOCOLS if complaint(kind, policy) is None]


def requirements(policy: type) -> tuple[str, ...]:
    """What a policy requires: its attribute `requires`, nothing where it has none."""
    return tuple(getattr(policy, "requires", ()))


def _wrong_requirement(policy: type) -> str | None:
    requires = getattr(policy, "requires", ())
    if isinstance(requires, str) or not all(isinstance(feature, str) for feature in requires):
        return f"{policy.__name__}.requires must be a tuple of words, not {requires!r}"
    for feature in requires:
        if feature not in FEATURES and feature.partition(".")[0] not in PROTOCOLS:
            return f"{policy.__name__} requires {feature!r}, which is unknown; choose {', '.join(FEATURES)}"
    return None


def _takes(policy: type, name: str, count: int) -> bool:
    """Whether a method can be called with so many arguments by position."""
    is_static = isinstance(inspect.getattr_static(policy, name), staticmethod | classmethod)
    try:
        inspect.signature(getattr(policy, name)).bind(*[None] * (count + (not is_static)))
    except (TypeError, ValueError):
        return False
    return True
