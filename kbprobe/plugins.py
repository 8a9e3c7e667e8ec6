"""What the registries share that other packages, and users' own files, add to.

A broken package is left out, and an error in such code is told as one of that code.
"""

from __future__ import annotations

import sys
from traceback import walk_tb

_told: set[str] = set()
_others: set[str] = set()


def of_others(module: str) -> None:
    """Note that a module, with all of its package, is not kbprobe's."""
    _others.add(module.partition(".")[0])


def place_of_others(error: BaseException) -> str:
    """Return the innermost line of noted code that an error came by ("probes.py, line 7"), or "".

    >>> place_of_others(ValueError())
    ''
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    places = [
        f"{frame.f_code.co_filename}, line {line}"
        for frame, line in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _others
    ]
    return places[-1] if places else ""


def left_out(what: str, name: str, error: BaseException) -> None:
    """Warn, once in a process, that an entry of another package is left out.

    Args:
        what: what the entry is: "probe", "scorer".
        name: of the entry point.
        error: why it cannot be used.
    """
    message = (
        f"warning: the {what} {name!r} of another package was left out: "
        f"{type(error).__name__}: {error}"
    )
    if message not in _told:
        _told.add(message)
        print(message, file=sys.stderr)
