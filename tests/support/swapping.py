"""A core that swaps to the host, and the smallest traffic that makes it."""

from __future__ import annotations

from typing import Any

from llmsim.policies.core.sequence import Sequence

from .driven_core import VLLM, DrivenCore, request_of

SWAPPING: dict[str, dict[str, Any]] = VLLM | {"preemption": {"name": "newest", "mode": "swap"}}


def contend(driven: DrivenCore, num_prompt: int = 12) -> Sequence:
    """Two requests that outgrow the memory together: steps until the second is on the host; returns it."""
    driven.add(request_of("a", num_prompt, 12), 0)
    driven.add(request_of("b", num_prompt, 12), 0)
    while not driven.core.host.num_used:
        assert driven.is_busy, "the two did not contend"
        driven.step(0)
    return driven.core.sequences["b"]
