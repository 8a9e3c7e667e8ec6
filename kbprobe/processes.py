"""Python processes that import nothing from the working directory, whatever files it holds.

``python -m`` puts the working directory first in ``sys.path``, and Ray does so in its workers: a
file there that has the name of a package would run in its place.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(_PACKAGE)
_COMMANDS = ("kbprobe", "builders", "evaluation", "release", "kb_cache")
"""The packages that ``python -m`` runs commands of."""


def leave_working_directory() -> None:
    """Remove the working directory from ``sys.path`` where ``python -m`` put it for a command.

    A clone of kbprobe is kept: its packages are imported from there.
    """
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is None or spec.name.partition(".")[0] not in _COMMANDS or sys.flags.safe_path:
        return
    try:
        here = os.getcwd()
    except FileNotFoundError:  # it was removed
        return
    if sys.path and sys.path[0] == here != _ROOT:
        del sys.path[0]


def python_command(*words: str) -> list[str]:
    """Return the command line of this interpreter with arguments, for `python_environment`."""
    return [sys.executable, "-P", *words]


def python_environment(**variables: str) -> dict[str, str]:
    """Return the environment variables for `python_command` and the processes that it starts."""
    path = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    if _is_clone():  # perhaps the one in the working directory, without an installation
        path.append(_ROOT)
    found = {**os.environ, "PYTHONSAFEPATH": "1", **variables}
    return {**found, "PYTHONPATH": os.pathsep.join(path)} if path else found


@contextmanager
def outside_working_directory() -> Iterator[None]:
    """Run a block elsewhere: in a clone of kbprobe, or in a folder without Python files.

    For programs that make their working directory one that their workers import from.
    """
    here = os.getcwd()
    os.chdir(_ROOT if _is_clone() else os.path.join(_PACKAGE, "format", "data"))
    try:
        yield
    finally:
        os.chdir(here)


def _is_clone() -> bool:
    return os.path.isfile(os.path.join(_ROOT, "pyproject.toml"))
