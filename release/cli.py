"""The command ``release-probe``.

Only click and the standard library are imported at the top, and each command when it is asked
for: ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from kbprobe.cli import Dispatch, run

PROGRAM = "release-probe"
COMMANDS = {
    "check": ("release.checks.command", "check"),
    "verify": ("release.hub.command", "verify"),
    "export": ("release.exports.command", "export"),
    "annotate": ("release.annotation.command", "annotate"),
}
"""Name of a subcommand -> the module and attribute that hold it."""


def main(args: Sequence[str] | None = None) -> None:
    """Run ``release-probe`` and exit with its code."""
    words = list(sys.argv[1:] if args is None else args)
    commands = {word: _command(*COMMANDS[word]) for word in words[:1] if word in COMMANDS}
    sys.exit(run(Dispatch(PROGRAM, commands, _publish), words, PROGRAM))


def _publish(_: Sequence[str]) -> click.Command:
    """Make the command that stands for all that names no subcommand: publishing."""
    return _command("release.hub.command", "publish")


def _command(module: str, name: str) -> click.Command:
    command = getattr(import_module(module), name)
    assert isinstance(command, click.Command)
    return command


if __name__ == "__main__":
    main()
