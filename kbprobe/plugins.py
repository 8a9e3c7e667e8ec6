"""Support for registries that other packages, and users' own files, can extend.

It imports files, leaves out broken packages, and attributes errors to third-party code.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.terminal import echo

IN_FILE = re.compile(r"(.+\.py)(?::(\w+))?")
"""A user's Python file, with or without the name of an entry in it."""

_told: set[str] = set()
_others: set[str] = set()


def of_others(module: str) -> None:
    """Record that a module, and its whole package, is not part of kbprobe."""
    _others.add(module.partition(".")[0])


def place_of_others(error: BaseException) -> str:
    """Return the innermost line of third-party code in a traceback ("probes.py, line 7"), or "".

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
        echo(message, err=True)


def import_file(path: Path, instead: str) -> ModuleType:
    """Import a Python file of the user's own, once in a process.

    Args:
        path: the file.
        instead: what to name if ``path`` is not a Python file, for the message.

    Raises:
        UsageError: there is no such file.
        KbprobeError: it cannot be imported.
    """
    place = path.absolute()
    spec = importlib.util.spec_from_file_location(path.stem, place)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError(f"{path} is not a Python file; name {instead}")
    module = sys.modules.get(path.stem)
    if module is None or module.__file__ != str(place):
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        of_others(path.stem)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[path.stem]
            where = place_of_others(error) or place
            raise KbprobeError(
                f"{path} cannot be imported: {type(error).__name__}: {error} ({where}). Correct it."
            ) from error
    return module
