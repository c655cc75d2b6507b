"""Importers: one small file for each source of kernel timings, registered here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...sim.cost_model.profile import Profile
from ...sim.cost_model.timings import ProfileError
from . import aiconfigurator, llmservingsim, vidur
from .request import ImportRequest


@dataclass(frozen=True, slots=True)
class Importer:
    """A kind of source: how it is recognised, and how it is read."""

    name: str
    what: str
    recognises: Callable[[str], bool]
    """Whether a SOURCE given on the command line is of this kind."""
    read: Callable[[ImportRequest], Profile]
    """Header and timings as the source has them, in our units; ProfileError names file and row."""


IMPORTERS = (
    Importer("llmservingsim", llmservingsim.WHAT, llmservingsim.recognises, llmservingsim.read),
    Importer("vidur", vidur.WHAT, vidur.recognises, vidur.read),
    Importer("aiconfigurator", aiconfigurator.WHAT, aiconfigurator.recognises, aiconfigurator.read),
)


def import_timings(request: ImportRequest) -> Profile:
    """The table that a source holds; ProfileError where no importer knows it, or the one that does finds fault."""
    for importer in IMPORTERS:
        if importer.recognises(request.source):
            return importer.read(request)
    if not Path(request.source).exists():
        raise ProfileError(f"{request.source}: there is no such folder")
    kinds = "; ".join(f"{importer.name}: {importer.what}" for importer in IMPORTERS)
    raise ProfileError(f"{request.source}: is none of the known sources ({kinds})")
