"""Imports of users' files and of packages, without the unneeded imports of the latter.

Broken packages are left out of registries, and errors are attributed to third-party code.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.terminal import echo

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

IN_FILE = re.compile(r"(.+\.py)(?::(\w+))?")
"""A user's Python file, with or without the name of an entry in it."""


def entry_points(group: str) -> EntryPoints:
    """Return the entry points of a group; those of all groups are read once, in some 20 ms."""
    found: EntryPoints = _installed(tuple(sys.path)).select(group=group)
    return found


@cache
def _installed(_path: tuple[str, ...]) -> Any:
    from importlib.metadata import entry_points  # slow to import

    return entry_points()


_told: set[str] = set()
_others: set[str] = set()


def of_others(module: str) -> None:
    """Record that a module, with its whole package, is third-party code."""
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
    """Warn, once per process, that an entry of another package is left out.

    Args:
        what: what the entry is: "probe", "scorer".
        name: the name of the entry point.
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
    """Import a user's Python file, once per process.

    Args:
        path: the file.
        instead: what to suggest if ``path`` is not a Python file, for the message.

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


class _Without:
    """A module finder that reports some modules as missing."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def find_spec(self, name: str, *_: Any) -> None:
        if name in self.names:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Hide packages from imports within the block, unless they are already imported."""
    finder: Any = _Without(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@contextmanager
def deferred(module: str, function: str) -> Iterator[None]:
    """Let packages within the block import a function before its module, unless that is imported.

    The module is imported when the function is called, or when anything else of it is needed.
    """
    if module in sys.modules:
        yield
        return

    def imported(name: str) -> Any:
        if name.startswith("__"):  # asked of all modules, as by inspect
            raise AttributeError(name)
        if sys.modules.get(module) is substitute:
            del sys.modules[module]
        return getattr(importlib.import_module(module), name)

    def called(*args: Any, **options: Any) -> Any:
        return imported(function)(*args, **options)

    substitute: Any = ModuleType(module)
    spec = importlib.util.find_spec(module)
    substitute.__path__ = spec.submodule_search_locations if spec else []
    substitute.__getattr__ = imported
    setattr(substitute, function, called)
    sys.modules[module] = substitute
    try:
        yield
    finally:
        if sys.modules.get(module) is substitute:
            del sys.modules[module]


@cache
def lemminflect() -> Any:
    """Return lemminflect, imported without spaCy, which it would extend if installed."""
    with without("spacy"):
        import lemminflect
    return lemminflect


@cache
def inflect() -> Any:
    """Return inflect, imported without its run-time type checks, which take 2 s to set up."""
    try:
        import typeguard
    except ModuleNotFoundError:  # a later inflect may not use it
        import inflect

        return inflect
    checked: Any = typeguard.typechecked
    typeguard.typechecked = lambda function: function  # type: ignore[assignment]
    try:
        import inflect
    finally:
        typeguard.typechecked = checked
    return inflect


def let_arrow_ignore_pandas() -> None:
    """Keep Arrow from importing pandas when it creates its first array.

    That takes 0.2 s and 40 MiB. Code that needs pandas still imports it.
    """
    import pyarrow as pa

    with without("pandas"):
        pa.array([0])  # Arrow checks for it only once.
