"""The command line: `llmsim run scenarios/agent.yaml` and its neighbours, one command a file.

Tables, progress and warnings go to stderr and are for people; `--json` prints one JSON object on stdout. A user's
mistake is one line and exit code 2; a check that failed exits 1.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import traceback

import typer

from ..calibrate.least_squares import CannotTell
from ..calibrate.runs.errors import RunError
from ..policies import registry
from ..policies.core import specs
from ..policies.core.journal import JournalError
from ..scenarios.case_reading import CaseError
from ..scenarios.errors import ScenarioError
from ..scenarios.stopping import RunInterrupted
from ..scenarios.studies.parallel import GC_THRESHOLDS
from ..scenarios.studies.sweep import SweepInterrupted
from ..sim.cost_model.timings import ProfileError
from .app import app

# typer may bring a click of its own: its exceptions are reached through typer.
ClickException: type[Exception] = typer.BadParameter.__mro__[2]
DEBUG = "--debug"
USER_ERRORS = (
    *(ScenarioError, CaseError, JournalError, ProfileError, RunError, CannotTell),
    *(registry.PolicyError, specs.UnknownName),
)
"""Mistakes of the user's, told in one line."""
INTERRUPTED = 130
"""The exit code of what Ctrl-C ended: 128 + SIGINT."""


def main(arguments: list[str] | None = None) -> None:
    """The console script: errors in one line, and exit codes."""
    gc.set_threshold(*GC_THRESHOLDS)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # tidied up after as Ctrl-C is
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = DEBUG in arguments
    try:
        arguments = [argument for argument in arguments if argument != DEBUG]  # it may stand anywhere
        status = app(args=arguments, prog_name="llmsim", standalone_mode=False)
        if status == INTERRUPTED:
            raise KeyboardInterrupt  # typer has turned it into a status
        sys.stdout.flush()
    except USER_ERRORS as error:
        if debug:
            traceback.print_exception(error)
        fail(str(error))
    except ClickException as error:
        fail(str(getattr(error, "format_message", error.__str__)()))
    except (SweepInterrupted, RunInterrupted) as interrupted:
        print(interrupted, file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # whoever read has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:  # a full disk, say
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error))
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted; nothing was written", file=sys.stderr)
        sys.exit(INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


def fail(message: str) -> None:
    """One line on stderr, exit code 2."""
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)
