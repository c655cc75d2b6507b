"""What a driver asks of an executor; torch is not needed to know it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ..policies.core.estimator import StepCost
from ..policies.core.plan import StepPlan, StepResult
from ..policies.core.request import Output, Request


class StepDone(NamedTuple):
    """What is known of a step once its tokens have reached the host."""

    result: StepResult
    cost: StepCost
    """Device time as measured; host time as far as the executor knows it."""
    tokens: dict[str, list[int]]
    """New tokens of each request that got any in this step, where outputs are sampled; empty where they are forced."""


class Ticket(Protocol):
    """A step on its way."""

    def wait(self) -> StepDone:
        """Wait until its tokens have reached the host. Raises StepFailed, which names the step.

        Once; again only where a KeyboardInterrupt broke it off.
        """
        ...


class StepFailed(RuntimeError):
    """A step could not be carried out, or yielded numbers that are none. The message names it."""

    @classmethod
    def of(cls, step: int, error: Exception) -> StepFailed:
        """By what the device, or a library on the way to it, raised."""
        return cls(f"step {step}: {first_line(error)}")


def first_line(error: Exception) -> str:
    """What an error of a library's says, in one line; its kind where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]


class Executor(Protocol):
    """Carries out plans in order."""

    def expect(self, request: Request, output: Output) -> None:
        """Learn of a request before it is given to the core, and what it will generate where outputs are forced."""
        ...

    def forget(self, request_id: str) -> None:
        """The request ended."""
        ...

    def launch(self, plan: StepPlan) -> Ticket:
        """Send a step on its way, right after it was planned and before anything else is planned. Does not wait.

        Raises StepFailed where it cannot be sent.
        """
        ...

    def close(self) -> None:
        """Finish what is under way and free the device's memory."""
        ...
