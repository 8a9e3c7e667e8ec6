"""Printing to a terminal, with control characters in data escaped, and without passwords.

Everything that kbprobe's commands print goes through here: text from a probe, a result, a server or
a file name could otherwise move the cursor, set the title or rewrite printed lines.
"""

from __future__ import annotations

import logging
import re
from typing import Any

import click

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
"""Control characters other than tab and line break, and text direction marks."""


_CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")


def without_credentials(text: str) -> str:
    """Return a text without the users and passwords of the addresses in it.

    >>> without_credentials("http://me:secret@host/v1 is no answer")
    'http://[...]@host/v1 is no answer'
    """
    return _CREDENTIALS.sub("[...]@", text)


def visible(text: str) -> str:
    r"""Return a text with control characters escaped as in JSON, and no passwords in addresses.

    >>> visible("a\x1b[31mb\r\n"), visible("\x9b1m")
    ('a\\u001b[31mb\r\n', '\\u009b1m')
    """
    escaped = _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return without_credentials(escaped)


def echo(message: Any = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line; see `visible`.

    Args:
        message: what to print.
        err: to stderr instead of stdout.
        nl: end the line.
    """
    click.echo(visible(str(message)), err=err, nl=nl)


class VisibleFormatter(logging.Formatter):
    """Formats log records; see `visible`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, or lines, of a record."""
        return visible(super().format(record))
