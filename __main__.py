"""The command line, as `python -m llmsim` and as the console script: Ctrl-C is quiet while it is imported, too."""

from __future__ import annotations

import sys


def main() -> None:
    """Import it, which takes a moment, and run it."""
    try:
        from .cli import main as command_line
    except KeyboardInterrupt:
        print("interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)  # 128 + SIGINT, as of a command
    command_line()


if __name__ == "__main__":
    main()
