"""What goes wrong with a policy: before a run (PolicyError) and in it (PolicyFault)."""

from __future__ import annotations


class PolicyError(ValueError):
    """A policy was asked for that does not exist or cannot be used, or with parameters that it does not take.

    `key` is the part of the specification at fault: `name`, or a parameter.
    """

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


class PolicyFault(Exception):
    """A policy that is none of the house's broke its contract in a run; its cause, if any, is what it raised.

    `during` is the method, `says` what it did.
    """

    def __init__(self, kind: str, name: str, during: str, says: str) -> None:
        super().__init__(kind, name, during, says)
        self.kind = kind
        self.name = name
        self.during = during
        self.says = says

    def __str__(self) -> str:
        return f"{self.name}: {self.during} {self.says}"


class PolicyHangs(BaseException):
    """Raised, by whoever watches a run, inside a policy that does not come back: no `except Exception` stops it."""
