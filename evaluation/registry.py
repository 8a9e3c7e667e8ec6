"""Registries: entries that kbprobe has built in, and those that installed packages add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, Protocol, TypeVar

from kbprobe.errors import KbprobeError, UsageError, did_you_mean
from kbprobe.plugins import left_out


class Named(Protocol):
    """Anything with a name to be found by."""

    @property
    def name(self) -> str:
        """The name."""
        ...


_Entry = TypeVar("_Entry", bound=Named)


class Registry(Generic[_Entry]):
    """Entries of one kind by name: built-in ones first, then those of installed packages.

    A package adds entries through an entry point group in its ``pyproject.toml``::

        [project.entry-points."kbprobe.scorers"]
        pmi = "my_package.pmi:PMI"
    """

    def __init__(self, what: str, group: str, kind: type[_Entry], built_in: Sequence[str]) -> None:
        """Describe the registry; nothing is imported until it is first used.

        Args:
            what: what an entry is, for messages: ``scorer``.
            group: the entry point group of other packages' entries.
            kind: the class that all entries have.
            built_in: kbprobe's own entries, each as ``module:attribute``.
        """
        self._what, self._group, self._kind, self._built_in = what, group, kind, built_in
        self._entries: dict[str, _Entry] | None = None

    def __iter__(self) -> Iterator[_Entry]:
        return iter(self._all().values())

    def names(self) -> list[str]:
        """Return the names of all entries."""
        return list(self._all())

    def get(self, name: str) -> _Entry:
        """Return an entry by its name.

        Raises:
            UsageError: there is none; the message names those that there are.
        """
        entries = self._all()
        if name not in entries:
            hint = did_you_mean(name, entries)
            raise UsageError(
                f"no {self._what} {name!r}.{hint} There are: {', '.join(sorted(entries))}."
            )
        return entries[name]

    def add(self, entry: _Entry) -> _Entry:
        """Register an entry for this process, as a notebook or a test does.

        Raises:
            KbprobeError: another entry has this name.
        """
        return self._add(self._all(), entry, "this process")

    def remove(self, name: str) -> None:
        """Take an entry out again."""
        self._all().pop(name, None)

    def _all(self) -> dict[str, _Entry]:
        if self._entries is None:
            self._entries = {}
            for place in self._built_in:
                module, _, attribute = place.partition(":")
                self._add(self._entries, getattr(import_module(module), attribute), "kbprobe")
            for point in entry_points(group=self._group):
                try:
                    self._add(self._entries, point.load(), f"the entry point {point.value}")
                except (Exception, SystemExit) as error:
                    # A package that is broken must not take kbprobe's own entries with it.
                    left_out(self._what, point.name, error)
        return self._entries

    def _add(self, entries: dict[str, _Entry], entry: _Entry, source: str) -> _Entry:
        if not isinstance(entry, self._kind):
            raise KbprobeError(f"{source} is a {type(entry).__name__}, and no {self._what}")
        if entry.name in entries:
            raise KbprobeError(f"{source} brings a second {self._what} named {entry.name!r}")
        entries[entry.name] = entry
        return entry
