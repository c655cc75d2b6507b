"""What lies between a client and the engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Frontend:
    """What lies between client and engine, in nanoseconds: TTFT is more than prefill."""

    ingress_ns: int = 0
    """From sent to the engine's inbox: half a network round trip and tokenising."""
    egress_ns: int = 0
    """From a token's commit to the client: detokenising and the other half."""


DIRECT = Frontend()
"""Nothing lies between."""
