"""A run's journal through a fresh core, with an eye on policies that are none of the house's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..policies.core.journal import read_journal
from ..policies.core.plan import StepPlan
from ..policies.core.replay import Replay
from .policy_watch import watched
from .recording import JOURNAL


class Replayed(NamedTuple):
    """What came of a replay."""

    journal: Path
    num_plans: int
    num_finished: int
    difference: str | None
    """The first, None where all is identical."""


def replay(result: Path, folder: Path | None = None, on_plan: Callable[[StepPlan], None] | None = None) -> Replayed:
    """Replay the journal of a result folder, or the file itself. Raises JournalError, and
    ScenarioError for a policy of a user's that is at fault.

    Files of policies are looked for in `folder`, else in the working directory and beside the journal. `on_plan` is
    called with each plan that is as it was, right after it was made.
    """
    journal = result / JOURNAL if (result / JOURNAL).is_file() else result
    folders = (Path(), journal.parent) if folder is None else (folder,)
    replayed = Replay(
        *(read_journal(journal), str(journal), folders, on_plan),
        watched=lambda core: watched(core, journal),
    )
    difference = replayed.run()
    return Replayed(journal, replayed.num_plans, replayed.num_finished, difference)
