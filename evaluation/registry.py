"""Registries of built-in entries, and of those from installed packages and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from kbprobe.errors import KbprobeError, UsageError, did_you_mean
from kbprobe.files import file_sha256
from kbprobe.plugins import IN_FILE, entry_points, import_file, left_out, of_others


class Named(Protocol):
    """Anything that can be looked up by name."""

    @property
    def name(self) -> str:
        """The name."""
        ...


_Entry = TypeVar("_Entry", bound=Named)


def imported(place: str, *further: Any) -> Callable[..., Any]:
    """Return a function that imports the one at ``module:function`` when it is called.

    It adds the ``further`` arguments. So an entry can name code that imports torch, and
    ``evaluate-probe --help`` stays fast.
    """

    def call(*args: Any) -> Any:
        return _found(place)(*args, *further)

    return call


def _found(place: str) -> Any:
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))


class Registry(Generic[_Entry]):
    """Entries of one kind by name: built-in ones first, then those of installed packages.

    A package adds entries through an entry point group in its ``pyproject.toml``::

        [project.entry-points."kbprobe.scorers"]
        pmi = "my_package.pmi:PMI"
    """

    def __init__(
        self, what: str, group: str, kind: type[_Entry], built_in: Mapping[str, str | _Entry]
    ) -> None:
        """Describe the registry; each entry is imported when it is first used.

        Args:
            what: what an entry is, for messages: ``scorer``.
            group: the entry point group of other packages' entries.
            kind: the class that all entries have.
            built_in: kbprobe's own entries by name, or each as ``module:attribute``.
        """
        self._what, self._group, self._kind, self._built_in = what, group, kind, built_in
        self._loaded: dict[str, _Entry] = {}
        self._others: dict[str, _Entry] | None = None
        self._imported: dict[tuple[Path, str], str] = {}

    def __iter__(self) -> Iterator[_Entry]:
        return map(self.get, self.names())

    def names(self) -> list[str]:
        """Return the names of all entries."""
        return [*self._built_in, *self._further()]

    def others(self) -> list[str]:
        """Return the names of entries that are not kbprobe's own."""
        return [*self._further()]

    def get(self, name: str) -> _Entry:
        """Return an entry by its name.

        Raises:
            UsageError: there is none; the message lists the existing ones.
        """
        if name in self._built_in:
            if name not in self._loaded:
                entry = self._built_in[name]
                self._loaded[name] = _found(entry) if isinstance(entry, str) else entry
            return self._loaded[name]
        if name not in self._further():
            names = self.names()
            hint = did_you_mean(name, names)
            raise UsageError(
                f"no {self._what} {name!r}.{hint} There are: {', '.join(sorted(names))}."
            )
        return self._further()[name]

    def import_named(self, text: str, recorded: Callable[[_Entry, str], _Entry]) -> str:
        """Return the name of an entry, given by name or as ``FILE.py:NAME``.

        The file is imported, and its entry registered for this process. ``FILE.py`` is enough
        where the file defines a single entry.

        Args:
            text: the name, or the file.
            recorded: makes an entry record the sha256 of the file that defines it.

        Raises:
            UsageError: there is no such file, or it has no such entry, several entries, or one
                whose name is taken.
            KbprobeError: the file cannot be imported.
        """
        in_file = IN_FILE.fullmatch(text)
        if in_file is None:
            return text
        path, name = Path(in_file[1]), in_file[2]
        key, entry = self._defined(path, name)
        place = path.absolute(), key
        if place not in self._imported:
            if entry.name in self.names():
                raise UsageError(
                    f"{path}: there is a {self._what} named {entry.name!r} already. Rename this one"
                )
            self._further()[entry.name] = recorded(entry, file_sha256(path))
            self._imported[place] = entry.name
        return self._imported[place]

    def _defined(self, path: Path, name: str | None) -> tuple[str, _Entry]:
        """Return an entry that a file defines, and its name there."""
        known = [*map(id, self)]
        module = import_file(path, f"a {self._what}, or FILE.py:NAME")
        there = {
            key: value
            for key, value in vars(module).items()
            if isinstance(value, self._kind) and id(value) not in known
        }
        if name is None and len(there) == 1:
            return next(iter(there.items()))
        if name in there:
            return name, there[name]
        lacks = f"no {self._what} {name!r}" if name else f"{len(there) or 'no'} {self._what}s"
        remedy = f" Name one: {' or '.join(f'{path}:{key}' for key in there)}" if there else ""
        raise UsageError(f"{path} defines {lacks}.{remedy}")

    def add(self, entry: _Entry) -> _Entry:
        """Register an entry for this process, as a notebook or a test does.

        Raises:
            KbprobeError: another entry has this name.
        """
        return self._add(entry, "this process")

    def remove(self, name: str) -> None:
        """Remove an entry that comes from another package, a file or this process."""
        self._further().pop(name, None)
        self._imported = {key: one for key, one in self._imported.items() if one != name}

    def _further(self) -> dict[str, _Entry]:
        """Return the entries that are not built in."""
        if self._others is None:
            self._others = {}
            for point in entry_points(group=self._group):
                of_others(point.module)
                try:
                    self._add(point.load(), f"the entry point {point.value}")
                except (Exception, SystemExit) as error:
                    # A broken package must not make kbprobe's own entries unavailable.
                    left_out(self._what, point.name, error)
        return self._others

    def _add(self, entry: _Entry, source: str) -> _Entry:
        if not isinstance(entry, self._kind):
            raise KbprobeError(f"{source} is a {type(entry).__name__}, and no {self._what}")
        if entry.name in self.names():
            raise KbprobeError(f"{source} brings a second {self._what} named {entry.name!r}")
        self._further()[entry.name] = entry
        return entry
