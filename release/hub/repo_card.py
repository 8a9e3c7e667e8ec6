"""The card of a repository: three-way merge of generated text (between marks) and the owner's.

A repository's card has a part for each probe in it. Sections that somebody edited between the marks
are kept too, as long as what is generated there has not changed as well.

A change by only one side is taken from that side. Different changes by both sides are a conflict,
which is reported and which only the publisher can resolve.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kbprobe.errors import UsageError
from kbprobe.format.setups import DEFAULT_CONFIG
from release.cards import join_card, parse_header, sections, split_header

Prefer = Literal["generated", "hub"]
KEYS = ("id", "config_name", "split", "name")
"""The keys that identify entries in lists of mappings: in tasks, and in front matter."""


ABSENT = object()
"""Represents a missing value, since None is a value in YAML."""


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
        """Merge three versions of a value: last published, to be published, and on the Hub.

        :data:`ABSENT` represents a missing value; ``place`` is for messages.
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


_MARKS = re.compile(
    r"^<!-- kbprobe:begin (?P<name>\S+) [^\n]*-->\n"
    r"(?P<block>.*?)"
    r"^<!-- kbprobe:end (?P=name) -->\n?",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class GeneratedCard:
    """What was generated for the card when a probe was published, as ``release.json`` keeps it.

    Sections are kept as digests, by their headings.
    """

    front: Mapping[str, Any] = field(default_factory=dict)
    sections: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, front: Mapping[str, Any], text: str) -> GeneratedCard:
        """Record what is generated, for the next publication."""
        return cls(dict(front), {name: digest(part) for name, part in sections(text).items()})


@dataclass(frozen=True)
class MergedCard:
    """A card to be published; ``kept`` names sections and entries that others wrote."""

    text: str
    kept: tuple[str, ...]


def merge_card(
    name: str,
    front: Mapping[str, Any],
    text: str,
    hub: str | None,
    base: GeneratedCard,
    prefer: Prefer | None = None,
) -> MergedCard:
    """Merge ``front`` and ``text``, generated for a probe, into a repository's card.

    The probe is published as the config ``name``. ``hub`` is the card on the Hub, if any, and
    ``base`` what was generated when the probe was published last. ``prefer`` settles conflicts.

    Raises:
        UsageError: both changed the same entry or section, and ``prefer`` is not given; or the
            card on the Hub cannot be read.
    """
    if hub is None:
        return MergedCard(join_card(front, f"\n{marked(name, text)}"), ())
    header, rest = split_header(hub.replace("\r\n", "\n"))
    before = hub_front(hub)
    merge = Merge(prefer)
    merged = merge.tree(base.front, dict(front), as_lists(before))
    rest, kept = _merge_text(merge, name, text, rest, base)
    if merge.conflicts:
        raise UsageError(
            "README.md was changed on the Hub where its generated part changes too: "
            f"{', '.join(merge.conflicts)}. Move what was written there below the last mark "
            "(<!-- kbprobe:end ... -->), where it is kept, or choose a side: --prefer hub or "
            "--prefer generated."
        )
    edited = [
        key
        for key in base.front
        if key in front
        and before.get(key) not in (None, base.front[key])
        and merged.get(key) != front[key]
    ]
    text = f"---\n{header}---\n{rest}" if merged == before else join_card(merged, rest, header)
    return MergedCard(text, (*edited, *kept))


def hub_front(card: str) -> dict[str, Any]:
    """Read the front matter of a card on the Hub; a UsageError if it is not a YAML mapping."""
    try:
        return parse_header(split_header(card.replace("\r\n", "\n"))[0])
    except UsageError as error:
        raise UsageError(
            f"README.md on the Hub: {error}. Correct the lines between --- there, and publish "
            "again."
        ) from None


def as_lists(front: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``dataset_info`` and ``configs`` as lists: the Hub also accepts single entries."""
    single = {
        key: [{"config_name": DEFAULT_CONFIG, **front[key]}]
        for key in ("configs", "dataset_info")
        if isinstance(front.get(key), Mapping)
    }
    return {**front, **single}


def _merge_text(
    merge: Merge, name: str, text: str, rest: str, base: GeneratedCard
) -> tuple[str, list[str]]:
    ours = sections(text)
    place = next((found for found in _MARKS.finditer(rest) if found["name"] == name), None)
    if place is None:
        around = _without_generated(rest, base.sections).rstrip("\n")
        return (f"{around}\n\n" if around.strip() else "\n") + marked(name, text), []
    theirs = sections(place["block"])
    merged = merge.texts(base.sections, ours, theirs, digest)
    kept = [key for key, part in merged.items() if part != ours.get(key)]
    if merged == theirs:
        return rest, kept
    inside = marked(name, "".join(merged.values()))
    return rest[: place.start()] + inside + rest[place.end() :], kept


def _without_generated(rest: str, generated: Mapping[str, str]) -> str:
    """Remove generated sections, given their digests, from a card whose marks somebody deleted.

    The parts of other probes, between their marks, are left alone.
    """
    if not generated:
        return rest
    kept, at = [], 0
    for start, end in (*(found.span() for found in _MARKS.finditer(rest)), (len(rest), len(rest))):
        outside = sections(rest[at:start])
        kept += [part for key, part in outside.items() if generated.get(key) != digest(part)]
        kept.append(rest[start:end])
        at = end
    return "".join(kept)


def marked(name: str, text: str) -> str:
    """Return a probe's part of a card between its marks."""
    body = "".join(sections(text).values()).rstrip()
    return (
        f"<!-- kbprobe:begin {name} (release-probe writes everything down to the end mark; text "
        f"outside the marks is kept) -->\n{body}\n<!-- kbprobe:end {name} -->\n"
    )


def unmarked(text: str) -> str:
    """Return the text of a card without marks; the text between them is kept."""
    return re.sub(r"^<!-- kbprobe:(?:begin|end) [^\n]*-->\n?", "", text, flags=re.MULTILINE)


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
