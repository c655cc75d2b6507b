"""The requests that a workload offers, in order of time, as if each were served the moment it comes."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count

from ..policies.core.request import Arrival
from ..policies.core.workload import Workload
from .errors import ScenarioError

MOST_AT_ONCE = 1_000_000


def offered(workload: Workload) -> Iterator[tuple[Arrival, bool]]:
    """`(request, whether it follows from the end of another)`.

    Service takes no time here, so what follows comes earlier than in a run. Raises ScenarioError where a million
    requests come at one instant: a closed loop without think time has no pace of its own.
    """
    following: list[tuple[int, int, Arrival]] = []
    order = count()
    now_ns = num_now = 0
    own = workload.arrivals()
    next_own = next(own, None)
    while next_own is not None or following:
        follows = bool(following) and (next_own is None or following[0][0] < next_own.time_ns)
        if follows:
            arrival = heappop(following)[2]
        else:
            assert next_own is not None
            arrival, next_own = next_own, next(own, None)
        num_now = num_now + 1 if arrival.time_ns == now_ns else 1
        now_ns = arrival.time_ns
        if num_now > MOST_AT_ONCE:
            raise ScenarioError(None, "workload", "a million requests come at one instant: service sets the pace")
        yield arrival, follows
        for after in workload.on_finish(arrival.request.id, now_ns):
            heappush(following, (after.time_ns, next(order), after))
