"""The exceptions that kbprobe raises on purpose, and checks of arguments that raise them.

Every message says what was wrong, where, and what to do about it. The commands print the
message alone; a traceback is shown only with ``--debug``.
"""

from __future__ import annotations

import difflib
import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path


class KbprobeError(Exception):
    """Base of every error that kbprobe raises on purpose."""


class UsageError(KbprobeError):
    """The request itself is wrong: an unknown name, an impossible option. Exit code 2."""


class CacheError(KbprobeError):
    """The cache folder cannot be read, written or locked."""


class SnapshotError(CacheError):
    """A snapshot is missing, half written, corrupt or of another format version."""


class SourceError(KbprobeError):
    """A source cannot be read or is not what it claims to be: a file, or a server."""


class MissingDependencyError(KbprobeError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f"Install it with: {how_to_install(extra)}"
        )


def how_to_install(extra: str = "", flags: str = "") -> str:
    """Return the pip command that installs kbprobe from a clone.

    >>> how_to_install("wikidata")
    "pip install '.[wikidata]' in a clone of kbprobe"
    >>> how_to_install(flags="--no-deps")
    'pip install --no-deps . in a clone of kbprobe'
    """
    command = f"pip install {flags}".strip()
    clone = f"'.[{extra}]'" if extra else "."
    return f"{command} {clone} in a clone of kbprobe"


def require(package: str, extra: str, purpose: str) -> None:
    """Check that an optional package is installed, without importing it.

    Raises:
        MissingDependencyError: it is not.
    """
    if find_spec(package) is None:
        raise MissingDependencyError(package, extra, purpose)


_NOT_FOR_USERS = ("all", "dev", "docs", "peers", "test", "test-all")
_MODULES = {"scikit-learn": "sklearn"}
"""Modules whose names are not those of their distributions."""


def extras_of_modules() -> dict[str, str]:
    """Return the modules that only extras install, with the first extra that lists each.

    They are read from the metadata of the installed package; without it there are none.
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        stated = requires("kbprobe") or []
    except PackageNotFoundError:
        return {}
    found: dict[str, str] = {}
    for requirement in stated:
        named = re.match(r"([\w.-]+)(\[)?.*\bextra == ['\"]([\w-]+)['\"]", requirement)
        if named and not named[2] and named[3] not in _NOT_FOR_USERS:
            name = named[1].lower()
            found.setdefault(_MODULES.get(name, name.replace("-", "_")), named[3])
    return found


def missing_extra(error: ModuleNotFoundError) -> MissingDependencyError | None:
    """Return the error that names the extra of a missing module, if an extra installs it."""
    module = (error.name or "").partition(".")[0]
    extra = extras_of_modules().get(module.lower())
    return MissingDependencyError(module, extra, "this") if extra else None


@contextmanager
def naming_extras() -> Iterator[None]:
    """Raise a `MissingDependencyError` where a module of an extra is missing.

    It decorates the functions of the Python API; the commands do the same for all they run.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        raise missing from error


def key_hint(field: str, options: Iterable[tuple[str, str | None]]) -> str:
    """Return a sentence if a name is not an option, but a key of one that lists its keys.

    Args:
        field: the name, as in Python.
        options: the spelling and the help text of each option.

    >>> key_hint("warmup", [("--training", "Settings of training. Keys: warmup, betas.")])
    ' It is a key: --training warmup=VALUE'
    """
    for spelling, text in options:
        if field in (text or "").partition("Keys: ")[2].rstrip(".").split(", "):
            return f" It is a key: {spelling} {field}=VALUE"
    return ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest known name, or an empty string.

    >>> did_you_mean("wordnet_hypernimy", ["wordnet_hypernymy", "wordnet_synonymy"])
    " Did you mean 'wordnet_hypernymy'?"
    >>> did_you_mean("zzz", ["wordnet_hypernymy"])
    ''
    >>> did_you_mean("--model", ["--wordnet", "--mode"]), did_you_mean("--model", ["--wordnet"])
    (" Did you mean '--mode'?", '')
    """
    # The dashes that all options begin with would make any two of them similar.
    spelled = {one.removeprefix("--"): one for one in sorted(known)}
    cutoff = 0.7 if name.startswith("--") else 0.6
    close = difflib.get_close_matches(name.removeprefix("--"), spelled, n=1, cutoff=cutoff)
    return f" Did you mean {spelled[close[0]]!r}?" if close else ""


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
