"""Checks of arguments of public functions, with errors that say what is accepted."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from kbprobe.errors import UsageError

BUILT = "the folder of a built probe, as kbprobe.build(NAME, output=DIR) writes it"
RESULTS = "a folder of results, as kbprobe.evaluate(PROBE, MODEL, output=DIR) writes it"
OUTPUT = "the path of a folder, or None"


def wrong_argument(place: str, value: object, accepted: str) -> UsageError:
    """Return the error for an argument of the wrong type.

    Args:
        place: the function and its argument: ``evaluate(model=...)``.
        value: what was given.
        accepted: what may be given instead.

    >>> str(wrong_argument("build(name=...)", ["a"], "the name of a probe"))
    'build(name=...) does not take a list: give the name of a probe'
    """
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    name = kind.__name__ if package in ("builtins", "__main__") else f"{package} {kind.__name__}"
    article = "an" if name[0] in "AEIOUaeiou" else "a"
    said = "None" if value is None else f"{article} {name}"
    return UsageError(f"{place} does not take {said}: give {accepted}")


def path_argument(place: str, value: object, accepted: str) -> Path:
    """Return an argument that names a file or folder as a path.

    The arguments are those of :func:`wrong_argument`.

    Raises:
        UsageError: it is not a path, or not one that a file system can hold.
    """
    if not isinstance(value, str | os.PathLike):
        raise wrong_argument(place, value, accepted)
    path = Path(value)
    try:
        os.lstat(path)
    except ValueError:  # a NUL
        raise UsageError(f"{place}: the path holds a NUL character: give {accepted}") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(
                f"{place}: a path of {len(os.fspath(path)):,} characters is too long: "
                f"give {accepted}"
            ) from None
    return path


def optional_path(place: str, value: object, accepted: str = OUTPUT) -> Path | None:
    """Return an argument that is a path or None; see :func:`path_argument`."""
    return None if value is None else path_argument(place, value, accepted)
