"""Sets the project up in a virtual environment of its own and runs it, or runs every check.

    python3 dev.py demo [ARGS]    set up, then `llmsim run scenarios/agent.yaml ARGS`
    python3 dev.py check [ARGS]   set up, then all checks and tests; ARGS go to pytest
    python3 dev.py setup          set up for development, run nothing

It needs Python >= 3.11 with its venv module, and a network (or pip's cache) the first time. It installs into
`.venv` beside this file and nowhere else.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
SCRIPTS = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = SCRIPTS / ("python.exe" if os.name == "nt" else "python")
CONSTRAINTS = ROOT / "constraints.txt"

STEPS = [
    ["ruff", "check", "."],
    ["ruff", "format", "--check", "."],
    ["mypy"],
    ["lint-imports", "--no-logo"],
    ["pytest", "-n", "2"],
]


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    command, extra = (arguments or ["--help"])[0], arguments[1:]
    if command in ("-h", "--help"):
        print(__doc__)
        return 0
    if command not in ("demo", "check", "setup"):
        fail(f"{command!r} is no command; choose demo, check, setup (see --help)")
    set_up(None if command == "demo" else "dev")
    if command == "demo":
        return run("llmsim", "run", "scenarios/agent.yaml", *extra)
    return check(extra) if command == "check" else 0


def check(extra: list[str]) -> int:
    """Run every step, also after one has failed, and say at the end which did."""
    failed = []
    for tool, *arguments in STEPS:
        name = " ".join([tool, *arguments])
        print(f"\n== {name}", flush=True)
        if run(tool, *arguments, *(extra if tool == "pytest" else [])) != 0:
            failed.append(name)
    print(f"\nfailed: {', '.join(failed)}" if failed else "\nall checks passed", flush=True)
    return 1 if failed else 0


def run(tool: str, *arguments: str) -> int:
    """Run a tool of the environment in the project's folder and return its exit code."""
    process = subprocess.Popen([SCRIPTS / tool, *arguments], cwd=ROOT)
    try:
        return process.wait()
    except KeyboardInterrupt:  # the tool got Ctrl-C too: let it clean up
        process.wait()
        raise


def set_up(extra: str | None) -> None:
    """Install the project, with this extra if any, unless that was done for these very requirements.

    The `dev` extra comes on top of the plain installation, so its stamp stands for both.
    """
    if extra == "dev":
        link_package()
    key = requirements_key()
    if PYTHON.exists() and key in (stamped(extra), stamped("dev")):
        return
    create_environment()
    install(extra)
    stamp(extra).write_text(key)


def stamp(extra: str | None) -> Path:
    """Where the requirements that were last installed with this extra are noted."""
    return VENV / f"llmsim-{extra or 'run'}.stamp"


def stamped(extra: str | None) -> str | None:
    """The key of the requirements that were last installed with this extra; None where none were."""
    return stamp(extra).read_text() if stamp(extra).exists() else None


def requirements_key() -> str:
    """A hash of what an installation depends on: the requirements, their pins and the project's place."""
    parts = [(ROOT / "pyproject.toml").read_bytes(), CONSTRAINTS.read_bytes(), os.fsencode(ROOT)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def link_package() -> None:
    """Make the link `.view/llmsim`, by which mypy sees the project's folder under the package's name."""
    link = ROOT / ".view" / "llmsim"
    link.parent.mkdir(exist_ok=True)
    if not link.is_symlink():
        link.symlink_to("..", target_is_directory=True)


def create_environment() -> None:
    """Create `.venv` where none works; one that works is kept, with whatever was added to it."""
    if python_runs("import pip"):
        return
    if any(importlib.util.find_spec(module) is None for module in ("venv", "ensurepip")):
        fail("this Python has no venv module; on Debian and Ubuntu: apt install python3-venv")
    print("creating .venv", flush=True)
    clear = [] if python_runs("pass") else ["--clear"]
    if subprocess.run([sys.executable, "-m", "venv", *clear, VENV]).returncode != 0:
        fail("could not create .venv (see above)")


def python_runs(code: str) -> bool:
    """Whether the environment's Python is there and runs this code without an error."""
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", code], capture_output=True).returncode == 0


def install(extra: str | None) -> None:
    """Install the project in editable form, in the pinned versions."""
    project = f".[{extra}]" if extra else "."
    print("installing into .venv (a few minutes the first time)", flush=True)
    pip = [str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    command = [*pip, "install", "--editable", project, "--constraint", str(CONSTRAINTS)]
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        fail("pip could not install the requirements (see above); the first time it needs a network")


def fail(reason: str) -> NoReturn:
    """Say in one line what is wrong and stop."""
    print(f"error: {reason}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  an older Python must get this far to be told
        fail("llmsim needs Python 3.11 or later; this is " + sys.version.split()[0])
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
