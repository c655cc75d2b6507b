"""Clients that wait: a bounded number of requests (or sessions) under way, the next sent when one has ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from ...policies.core.request import Arrival
from ..schema_pacing import Pacing
from .generated import NS_PER_S, GeneratedWorkload
from .lengths import times_ns


class ClosedLoop:
    """Holds the traffic's requests back so that no more than `num_clients` are under way.

    They are sent in their order: the first N at their own times, then one for each that ends, at its own time or at
    that of the end (and the client's pause), whichever is later. That is what a semaphore does to requests which
    queue for it. A session that goes on keeps its place.
    """

    def __init__(self, pacing: Pacing, traffic: GeneratedWorkload, seed: int) -> None:
        self._pacing = pacing
        self._traffic = traffic
        self._seed = seed
        self._held: Iterator[Arrival] = iter(())
        self._pauses: Iterator[int] = iter(())

    def arrivals(self) -> Iterator[Arrival]:
        """Each client's first request; starts the traffic anew."""
        self._held = self._traffic.arrivals()
        self._pauses = times_ns(self._pacing.pause_s, self._seed, "pause_s")
        return iter(list(islice(self._held, self._pacing.num_clients)))

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """What the end sets off in the traffic itself, else the next request that was held back."""
        followers = list(self._traffic.on_finish(request_id, now_ns))
        return followers or self._release(now_ns)

    def on_give_up(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """A retry, which keeps the client's place, else the next request that was held back."""
        return list(self._traffic.on_give_up(request_id, now_ns)) or self._release(now_ns)

    def _release(self, now_ns: int) -> Iterable[Arrival]:
        for arrival in islice(self._held, 1):
            time_ns = max(arrival.time_ns, now_ns + next(self._pauses))
            if self._pacing.duration_s is not None and time_ns >= self._pacing.duration_s * NS_PER_S:
                return ()
            return (_sent_at(time_ns, arrival),)
        return ()


def _sent_at(time_ns: int, arrival: Arrival) -> Arrival:
    """The same request at another time; its deadline moves with it."""
    request = replace(arrival.request, arrival_ns=time_ns)
    if request.deadline_ns is not None:
        request = replace(request, deadline_ns=request.deadline_ns + time_ns - arrival.time_ns)
    return replace(arrival, time_ns=time_ns, request=request)
