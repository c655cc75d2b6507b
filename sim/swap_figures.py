"""What swapping to host memory came to in a run: a pure function of its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..policies.core.records import EventKind, EventRecord
from .cost_model.host_link import HostLink
from .window import Window

SWAPS = frozenset({EventKind.SWAP_OUT, EventKind.SWAP_IN, EventKind.SWAP_FULL, EventKind.SWAP_DROP})


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The host's memory and the way there."""

    num_blocks: int
    block_bytes: int
    link: HostLink | None
    """None: copies were measured as a part of their steps."""


def swap_figures(events: Sequence[EventRecord], host: HostFacts, span: Window) -> dict[str, Any]:
    """Counts, bytes and time of the swaps from the span's start on; the peak is the whole run's.

    Bytes and times are those of each GPU; the share is of the span.
    """
    since = [event for event in events if event.time_ns >= span.start_ns]
    number = Counter(event.kind for event in since)
    out, back = (_blocks(since, kind) for kind in (EventKind.SWAP_OUT, EventKind.SWAP_IN))
    steps = _blocks_by_step(since)
    copy_ns = None if host.link is None else sum(map(host.link.copy_ns, steps.values()))
    block_bytes = host.block_bytes
    return {
        "num_out": number[EventKind.SWAP_OUT],
        "num_in": number[EventKind.SWAP_IN],
        "num_host_full": number[EventKind.SWAP_FULL],
        "num_dropped": number[EventKind.SWAP_DROP],
        "out_bytes": out * block_bytes,
        "in_bytes": back * block_bytes,
        "copy_s": None if copy_ns is None else copy_ns / 1e9,
        "time_share": copy_ns / span.length_ns if copy_ns is not None and span.length_ns else None,
        "host_bytes": host.num_blocks * block_bytes,
        "peak_host_bytes": _peak_blocks(events) * block_bytes,
    }


def _blocks(events: Iterable[EventRecord], kind: EventKind) -> int:
    return sum(event.num_blocks for event in events if event.kind is kind)


def _blocks_by_step(events: Iterable[EventRecord]) -> Counter[int]:
    """What each step copied, both ways together: as the executor priced it."""
    steps: Counter[int] = Counter()
    for event in events:
        if event.kind in (EventKind.SWAP_OUT, EventKind.SWAP_IN):
            steps[event.step] += event.num_blocks
    return steps


def _peak_blocks(events: Iterable[EventRecord]) -> int:
    """The most blocks on the host at once. What a request holds there is freed when it comes back or ends."""
    held: dict[str, int] = {}
    used = peak = 0
    for event in events:
        if event.kind is EventKind.SWAP_OUT:
            held[event.request_id] = event.num_blocks
            used += event.num_blocks
            peak = max(peak, used)
        elif event.kind is not EventKind.SWAP_FULL:
            used -= held.pop(event.request_id)
    return peak
