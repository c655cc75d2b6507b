"""What is written of a run while it lasts, and what becomes of it where the run is broken off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .. import __version__
from ..policies.core.engine import EngineCore
from ..policies.core.journal import JournalWriter
from ..policies.core.radix_cache import OutOfMemory
from ..policies.core.stall import StallError
from ..sim.recorder import Recorder
from .assembly import Assembly
from .errors import ScenarioError
from .policy_files import source_digests
from .policy_watch import blamed

JOURNAL = "journal.jsonl.gz"


def open_journal(folder: Path, assembly: Assembly) -> JournalWriter:
    """The journal of a run, in its folder."""
    sources = source_digests(assembly.policies, assembly.folders)
    return JournalWriter(folder / JOURNAL, assembly.config, assembly.policies, __version__, sources)


@contextmanager
def recording(assembly: Assembly, core: EngineCore, recorder: Recorder, log: JournalWriter | None) -> Iterator[None]:
    """Recorder and journal are closed at the end, and let go where anything is raised.

    An engine that stalled, or a policy of a user's that is at fault, becomes a ScenarioError.
    """
    source = assembly.scenario.source
    try:
        yield
        recorder.close()
        if log is not None:
            log.close()
    except BaseException as error:
        recorder.discard()
        if log is not None:
            with suppress(Exception):
                log.close()
        if isinstance(error, (StallError, OutOfMemory)):
            raise ScenarioError(source, "engine", f"the engine stalled at {error}") from None
        if wrong := blamed(error, core, source):
            raise wrong from (error.__cause__ or error)
        raise
