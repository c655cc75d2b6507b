"""Who looks after a user's policies breaks off what hangs, and leaves the process as it was."""

from __future__ import annotations

import subprocess
import sys

import pytest

from llmsim.policies.errors import PolicyHangs
from llmsim.real_engine.contract import StepFailed
from llmsim.scenarios import policy_watch
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.policy_watch import Watchdog, blamed
from llmsim.tests.support.driven_core import VLLM, core_of

TRACED = """
import sys
import time
from types import SimpleNamespace

from llmsim.policies.errors import PolicyHangs
from llmsim.scenarios import policy_watch

policy_watch.TICK_S = 0.01
idle = SimpleNamespace(call=None, num_calls=7, longest_s=0.03)
policy_watch.watches_of = lambda policies: [idle, SimpleNamespace(call="reorder", num_calls=1, longest_s=0.03)]
hung = False
try:
    with policy_watch.Watchdog(SimpleNamespace(policies=None)):
        while {hangs}:
            pass
except PolicyHangs:
    hung = True


def traced():
    return "went on"


sys.settrace(lambda *_: None)
print(hung, traced())
"""
"""A watched call that hangs, or does not, and a function that is traced after it."""


@pytest.mark.parametrize("hangs", [True, False])
def test_functions_can_be_traced_after_a_watched_run(*, hangs: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TRACED.format(hangs=hangs)], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == f"{hangs} went on\n"


class Late(Watchdog):
    """Raises at the last moment, when the call has returned."""

    def _look(self) -> None:
        self._over.wait()
        self._has_barked = True
        self._raise()


def test_what_is_raised_too_late_does_not_come_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_watch, "watches_of", lambda _: [object()])

    class Core:
        policies = None

    for _ in range(20):
        try:
            with Late(Core()):  # type: ignore[arg-type]
                pass
            for _ in range(1000):
                pass
        except PolicyHangs:
            pytest.fail("the run was broken off after its end")


@pytest.mark.parametrize(
    "error", [StepFailed("step 7: out of memory"), OSError("no space"), ScenarioError(None, "", "")]
)
def test_what_no_policy_can_have_caused_is_not_blamed_on_one(error: Exception) -> None:
    own = VLLM | {"scheduling": {"name": "llmsim.tests.support.faulty_policies:GoodScheduling"}}
    core = core_of(own, num_blocks=9)
    assert blamed(error, core, None) is None
    assert "GoodScheduling" in str(blamed(ValueError("a bug"), core, None))
