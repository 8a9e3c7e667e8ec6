"""Three-way merge of the last publication, the new one, and changes made on the Hub since.

A change by only one side is taken from that side. Different changes by both sides are a conflict,
which is named and which only the publisher can settle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Prefer = Literal["generated", "hub"]
KEYS = ("id", "config_name", "split", "name")
"""The keys that identify entries in lists of mappings: in tasks, and in front matter."""


ABSENT = object()
"""Stands for a missing value: None is a value in YAML."""


@dataclass
class Merge:
    """Merges trees of mappings, lists and plain values.

    Attributes:
        prefer: which side wins a conflict; None: the Hub's, and ``conflicts`` names the place.
        conflicts: the places that both sides changed, found so far.
    """

    prefer: Prefer | None = None
    conflicts: list[str] = field(default_factory=list)

    def tree(self, base: Any, ours: Any, theirs: Any, place: str = "") -> Any:
        """Merge a value as it was published last, is to be published, and is on the Hub.

        :data:`ABSENT` stands for a value that is not there; ``place`` is for messages.
        """
        if ours == theirs or theirs == base:
            return ours
        if ours == base:
            return theirs
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            return self._mapping(base if isinstance(base, Mapping) else {}, ours, theirs, place)
        if isinstance(ours, list) and isinstance(theirs, list):
            sides = [base if isinstance(base, list) else [], ours, theirs]
            for key in ("", *KEYS):
                keyed = [_by_key(side, key) for side in sides]
                if None not in keyed:
                    was, mine, other = (side or {} for side in keyed)
                    return list(self._mapping(was, mine, other, place).values())
        if theirs is ABSENT:  # removed on the Hub, but it has changed since
            return ours
        if ours is ABSENT:  # no longer generated, but somebody edited it
            return theirs
        if self.prefer is None:
            self.conflicts.append(place)
        return ours if self.prefer == "generated" else theirs

    def texts(
        self,
        base: Mapping[str, str],
        ours: Mapping[str, str],
        theirs: Mapping[str, str],
        digest: Callable[[str], str],
    ) -> dict[str, str]:
        """Merge sections of text by name, given only digests of the base."""
        known = {digest(text): text for side in (ours, theirs) for text in side.values()}
        mine, other = ({name: digest(side[name]) for name in side} for side in (ours, theirs))
        merged = self._mapping(base, mine, other, "", spell=lambda name: f"section {name!r}")
        return {name: known[code] for name, code in merged.items()}

    def _mapping(
        self,
        base: Mapping[str, Any],
        ours: Mapping[str, Any],
        theirs: Mapping[str, Any],
        place: str,
        spell: Callable[[str], str] = str,
    ) -> dict[str, Any]:
        merged = {}
        for name in in_order(theirs, ours):
            at = f"{place}.{spell(name)}" if place else spell(name)
            was, mine, other = (side.get(name, ABSENT) for side in (base, ours, theirs))
            value = self.tree(was, mine, other, at)
            if value is not ABSENT:
                merged[name] = value
        return merged


def _by_key(entries: Iterable[Any], key: str) -> dict[str, Any] | None:
    """Index a list by a key of its mappings, or, with an empty key, by its strings themselves.

    None if an entry has no such key, or two share one.
    """
    found: dict[str, Any] = {}
    for entry in entries:
        name = entry.get(key) if key and isinstance(entry, Mapping) else entry
        if not isinstance(name, str) or (key and name in found):
            return None
        found[name] = entry
    return found


def in_order(first: Iterable[str], second: Iterable[str]) -> list[str]:
    """Return all names: the first's in their order, each new one after the one it followed.

    >>> in_order(["a", "mine", "c"], ["new", "a", "b", "c", "d"])
    ['a', 'b', 'mine', 'c', 'd', 'new']
    """
    found = list(first)
    at = len(found)
    for name in second:
        if name in found:
            at = found.index(name) + 1
        else:
            found.insert(at, name)
            at += 1
    return found
