"""Run kbprobe's commands as ``python -m kbprobe COMMAND``, whatever the working folder holds."""

from __future__ import annotations

import sys
from importlib import import_module

from kbprobe.processes import leave_working_directory

COMMANDS = {
    "build-probe": "builders.cli",
    "evaluate-probe": "evaluation.cli",
    "release-probe": "release.cli",
    "kb-cache": "kb_cache.cli",
}

USAGE = f"usage: python -m kbprobe {{{','.join(COMMANDS)}}} [ARGUMENTS]"


def main() -> None:
    """Run the command that the first argument names."""
    leave_working_directory()
    name, *words = sys.argv[1:] or ["--help"]
    if name == "--version":
        from kbprobe.cli import kbprobe_version

        print(f"kbprobe {kbprobe_version()}")
    elif name in COMMANDS:
        sys.exit(import_module(COMMANDS[name]).main(words))
    else:
        asked_for_help = name in ("-h", "--help")
        print(USAGE, file=sys.stdout if asked_for_help else sys.stderr)
        sys.exit(0 if asked_for_help else 2)


if __name__ == "__main__":
    main()
