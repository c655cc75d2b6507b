"""Keeps an eye on policies that are none of the house's: stops one that hangs, and says who is at fault for what."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from ..policies.core.engine import EngineCore
from ..policies.core.journal import JournalError
from ..policies.errors import PolicyFault, PolicyHangs
from ..policies.finding import described
from ..policies.guarding import Guarded, watches_of
from ..real_engine.contract import StepFailed
from .errors import ScenarioError

TICK_S = 0.5
NO_POLICYS = (ScenarioError, OSError, JournalError, StepFailed)
"""Faults that are never a policy's: the user's own, the system's, a journal's, the device's."""


class Watchdog:
    """A context in which a call of a watched policy that lasts longer than `Watch.longest_s` is broken off.

    Nothing in Python ends a `while True: pass` but an exception raised in its thread from outside, which CPython can
    do. It is counted in ticks, so that a process that was stopped and goes on is not blamed. A loop inside C code
    (`sum(itertools.count())`) cannot be broken off. Where all policies are the house's, nothing is started.
    """

    def __init__(self, core: EngineCore) -> None:
        self._watches = watches_of(core.policies)
        self._over = threading.Event()
        self._has_barked = False
        self._thread = threading.get_ident()
        self._dog = threading.Thread(target=self._look, name="llmsim-watchdog", daemon=True)

    def __enter__(self) -> None:
        if self._watches:
            self._dog.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._dog.is_alive():
            with suppress(PolicyHangs):  # it came too late: the call has returned
                self._over.set()
                self._dog.join()
        if self._has_barked:
            self._absorb()

    def _look(self) -> None:
        watches, longest_s = self._watches, self._watches[0].longest_s
        seen, num_ticks = -1, 0
        while not self._over.wait(TICK_S):
            num_calls = sum(watch.num_calls for watch in watches)
            is_inside = any(watch.call is not None for watch in watches)
            num_ticks = num_ticks + 1 if is_inside and num_calls == seen else 0
            seen = num_calls
            if num_ticks * TICK_S > longest_s:
                self._has_barked = True
                self._raise()

    def _absorb(self) -> None:
        """Let what was raised, but has not come through yet, come through here.

        It is not taken back by raising None: then CPython looks for an exception before each instruction from then on,
        and CPython 3.11 never goes on from the first call of a function that is traced, by a debugger or for coverage.
        """
        with suppress(PolicyHangs):
            self._raise()
            while True:
                pass

    def _raise(self) -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(PolicyHangs))


@contextmanager
def watched(core: EngineCore, source: Path | None) -> Iterator[None]:
    """In here a user's policy that hangs is broken off, and one that is at fault becomes a ScenarioError (`blamed`)."""
    try:
        with Watchdog(core):
            yield
    except BaseException as error:
        if wrong := blamed(error, core, source):
            raise wrong from (error.__cause__ or error)
        raise


def blamed(error: BaseException, core: EngineCore, source: Path | None) -> ScenarioError | None:
    """What a user is told of an exception that a policy of theirs has caused; None where none has.

    `source` is the scenario's file, or the journal.
    """
    step = max(0, core.num_steps - 1)
    if isinstance(error, PolicyFault):
        when = f"before step {core.num_steps}" if error.during == "insert" else f"step {step}"
        return ScenarioError(source, f"policies.{error.kind}", f"{error.name}: {when}: {error.during} {error.says}")
    own = [policy.given_name for policy in core.policies if isinstance(policy, Guarded)]
    if not own or not isinstance(error, Exception | PolicyHangs) or isinstance(error, NO_POLICYS):
        return None
    message = f"the engine broke at step {step} under {', '.join(own)}: {described(error)}"
    return ScenarioError(source, "policies", message)
