"""The seam between traffic and an engine: where requests come from, and what a finish sets off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

from .request import Arrival


class Workload(Protocol):
    """Traffic that reacts to finishes; not a list.

    `arrivals` yields in order of time, lazily: the driver holds one arrival at a time. `on_finish` is called
    synchronously at the commit in which a request ended (finished, aborted or refused) and returns what that
    sets off: a next turn, the next request of a closed loop. Times are nanoseconds >= now_ns.
    """

    def arrivals(self) -> Iterator[Arrival]:
        """Requests that come by themselves, in order of time."""
        ...

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """Requests that the end of `request_id` sets off, each at or after `now_ns`."""
        ...


@runtime_checkable
class Impatient(Protocol):
    """A workload whose clients give up (`Arrival.patience_ns`), and what they do then."""

    def on_give_up(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """Called in place of `on_finish` where the client gave up: what it sends then, at or after `now_ns`."""
        ...
