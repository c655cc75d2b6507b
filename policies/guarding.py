"""Policies that are none of the house's are watched: what breaks a contract stops the run and is told in one line.

Each method of such a policy is called through a check that looks at what it did. The house's own are called as they
are, so that the checks cost nothing where only those are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .conformance import methods
from .core.guarded_builder import GuardedBuilder
from .core.sequence import Sequence
from .core.waiting_queue import WaitingQueue
from .errors import PolicyFault, PolicyHangs
from .finding import described, is_of_the_house

Call = Callable[..., Any]
LONGEST_CALL_S = 10.0
"""A call of a policy that lasts longer, on the clock, is held to hang."""


class Watch:
    """Which call of a watched policy is under way: whoever wants to know whether one hangs looks here."""

    def __init__(self) -> None:
        self.call: tuple[str, str, str] | None = None
        """Kind, name and method."""
        self.num_calls = 0
        self.longest_s = LONGEST_CALL_S


class Broken(Exception):
    """What a policy did wrong, as the end of a sentence that begins with the method."""


class Guarded:
    """Stands for a policy and calls it; what else it has (parameters, promises) is read through."""

    def __init__(self, kind: str, name: str, policy: Any, watch: Watch) -> None:
        self.given_name = name
        self._policy = policy
        self.watch = watch
        for method in methods(kind):
            call: Call = getattr(policy, method)
            setattr(self, method, self._guarded((kind, name, method), call))

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._policy, attribute)

    def _guarded(self, which: tuple[str, str, str], call: Call) -> Call:
        checks = _CHECKS | {("eviction", "rank"): _Ranks()}
        check: Callable[..., Any] = checks.get((which[0], which[2]), _unchecked)
        watch = self.watch

        def watched(*arguments: Any) -> Any:
            outer, watch.call = watch.call, which
            watch.num_calls += 1
            try:
                return check(call, *arguments)
            except PolicyFault:
                raise
            except Broken as broken:
                raise PolicyFault(*which, str(broken)) from broken.__cause__
            except PolicyHangs:
                raise PolicyFault(*which, f"had not come back after {watch.longest_s:g} s") from None
            except (Exception, SystemExit) as error:
                raise PolicyFault(*which, f"raised {described(error)}") from error
            finally:
                watch.call = outer

        return watched


def guarded(kind: str, name: str, policy: Any, watch: Watch) -> Any:
    """The policy, watched unless it is one of the house's."""
    return policy if is_of_the_house(type(policy)) else Guarded(kind, name, policy, watch)


def watches_of(policies: Iterable[Any]) -> list[Watch]:
    """The watches over those that are none of the house's, each once: an eviction policy that came with the cache of
    another engine has that one's."""
    return list({id(policy.watch): policy.watch for policy in policies if isinstance(policy, Guarded)}.values())


def _unchecked(call: Call, *arguments: Any) -> Any:
    return call(*arguments)


def _insert(call: Call, queue: WaitingQueue, sequence: Sequence, *more: Any) -> None:
    """One more than before, and it is the one."""
    before = len(queue)
    call(queue, sequence, *more)
    if len(queue) != before + 1 or sequence not in queue:
        raise Broken(f"was to queue {sequence.id} and left {len(queue)} sequences of {before}")


def _reorder(call: Call, queue: WaitingQueue, view: Any) -> None:
    """The same sequences as before, each once."""
    before = list(queue)
    call(queue, view)
    after = list(queue)
    if before == after:
        return
    known, left = set(before), set(after)
    if lost := known - left:
        raise Broken(f"dropped {_named(lost)} of {len(known)} waiting sequences")
    if strange := left - known:
        raise Broken(f"queued {_named(strange)}, which did not wait")
    if len(after) != len(left):
        twice = {sequence for sequence in left if after.count(sequence) > 1}
        raise Broken(f"left {_named(twice)} in the queue more than once")


def _named(sequences: set[Any]) -> str:
    """Up to three by name."""
    names = sorted(getattr(sequence, "id", repr(sequence)) for sequence in sequences)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _victim(call: Call, running: list[Sequence]) -> Sequence:
    """One of those that run."""
    victim = call(list(running))
    if not any(victim is sequence for sequence in running):
        raise Broken(f"named {_shown(victim)}, which is none of the {len(running)} that run")
    assert isinstance(victim, Sequence)
    return victim


def _shown(value: Any) -> str:
    if isinstance(value, Sequence):
        return f"{value.id} ({value.state.value})"
    return repr(value)[:60]


def _tokens(least: int) -> Callable[[Call, Any], int | None]:
    def check(call: Call, view: Any) -> int | None:
        tokens = call(view)
        if tokens is None or (type(tokens) is int and tokens >= least):
            return tokens
        raise Broken(f"returned {_shown(tokens)}; it must be None or a whole number, at least {least}")

    return check


class _Ranks:
    """One policy's ranks: numbers, or tuples of one length, that compare."""

    def __init__(self) -> None:
        self._first: Any = None

    def __call__(self, call: Call, entry: Any) -> Any:
        rank = call(entry)
        for part in rank if isinstance(rank, tuple) else (rank,):
            if not isinstance(part, int | float) or isinstance(part, bool) or part != part:
                raise Broken(f"returned {_shown(rank)}; it must be a number or a tuple of numbers")
        if self._first is None:
            self._first = rank
        if _length(rank) != _length(self._first):
            was = _shown(self._first)
            raise Broken(f"returned {_shown(rank)} after {was}; ranks must be numbers, or tuples of one length")
        return rank


def _length(rank: Any) -> int | None:
    return len(rank) if isinstance(rank, tuple) else None


def _compose(call: Call, step: Any) -> None:
    """With a builder that looks at each call."""
    call(GuardedBuilder(step, Broken))


_CHECKS: dict[tuple[str, str], Callable[..., Any]] = {
    ("scheduling", "insert"): _insert,
    ("scheduling", "reorder"): _reorder,
    ("preemption", "victim"): _victim,
    ("preemption", "put_back"): _insert,
    ("chunk_size", "step_tokens"): _tokens(0),
    ("chunk_size", "request_tokens"): _tokens(1),
    ("batching", "compose"): _compose,
}
