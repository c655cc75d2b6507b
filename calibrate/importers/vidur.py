"""Placeholder."""

from ...sim.cost_model.profile import Profile
from .request import ImportRequest

WHAT = "x"


def recognises(source: str) -> bool:
    return False


def read(request: ImportRequest) -> Profile:
    raise NotImplementedError
