"""The card of a repository: generated text between marks, everything else is the owner's.

A repository's card has a part for each probe in it. What stands between the marks of a probe is
replaced when it is published; text outside them, and entries of front matter that somebody added or
changed, are kept. An entry that has been changed on both sides is taken from the new card.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kbprobe.errors import UsageError
from kbprobe.format.setups import DEFAULT_CONFIG
from release.cards import join_card, parse_header, sections, split_header

KEYS = ("id", "config_name", "split", "name")
"""The keys that identify entries in lists of mappings: in tasks, and in front matter."""


ABSENT = object()
"""Represents a missing value, since None is a value in YAML."""


def merge(base: Any, ours: Any, theirs: Any) -> Any:
    """Merge three versions of a value: last published, to be published, and on the Hub.

    Mappings and lists are merged by entry. A change by one side alone is taken; where both changed
    a value, ours is taken. :data:`ABSENT` represents a missing value.
    """
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return _merge_mappings(base if isinstance(base, Mapping) else {}, ours, theirs)
    if isinstance(ours, list) and isinstance(theirs, list):
        sides = [base if isinstance(base, list) else [], ours, theirs]
        for key in ("", *KEYS):
            keyed = [_by_key(side, key) for side in sides]
            if None not in keyed:
                before, new, other = (side or {} for side in keyed)
                return list(_merge_mappings(before, new, other).values())
    # What is no longer generated, but was edited by somebody, stays.
    return theirs if ours is ABSENT else ours


def _merge_mappings(
    base: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> dict[str, Any]:
    merged = {
        name: merge(*(side.get(name, ABSENT) for side in (base, ours, theirs)))
        for name in in_order(theirs, ours)
    }
    return {name: value for name, value in merged.items() if value is not ABSENT}


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
class MergedCard:
    """A card to be published; ``kept`` names entries of front matter that others changed."""

    text: str
    kept: tuple[str, ...]


def merge_card(
    name: str,
    front: Mapping[str, Any],
    text: str,
    hub: str | None,
    base: Mapping[str, Any],
) -> MergedCard:
    """Merge ``front`` and ``text``, generated for a probe, into a repository's card.

    The probe is published as the config ``name``. ``hub`` is the card on the Hub, if any, and
    ``base`` the front matter that was generated when the probe was published last.

    Raises:
        UsageError: the card on the Hub cannot be read.
    """
    if hub is None:
        return MergedCard(join_card(front, f"\n{marked(name, text)}"), ())
    header, rest = split_header(hub.replace("\r\n", "\n"))
    before = hub_front(hub)
    merged = merge(base, dict(front), as_lists(before))
    rest = _with_part(name, text, rest)
    kept = tuple(
        key
        for key in base
        if key in front
        and before.get(key) not in (None, base[key])
        and merged.get(key) != front[key]
    )
    text = f"---\n{header}---\n{rest}" if merged == before else join_card(merged, rest, header)
    return MergedCard(text, kept)


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


def _with_part(name: str, text: str, rest: str) -> str:
    """Replace a probe's part of a card, or add it at the end."""
    part = marked(name, text)
    for place in _MARKS.finditer(rest):
        if place["name"] == name:
            return rest[: place.start()] + part + rest[place.end() :]
    around = rest.rstrip("\n")
    return (f"{around}\n\n" if around.strip() else "\n") + part


def marked(name: str, text: str) -> str:
    """Return a probe's part of a card between its marks."""
    body = "".join(sections(text).values()).rstrip()
    return (
        f"<!-- kbprobe:begin {name} (release-probe replaces everything down to the end mark; text "
        f"outside the marks is kept) -->\n{body}\n<!-- kbprobe:end {name} -->\n"
    )


def unmarked(text: str) -> str:
    """Return the text of a card without marks; the text between them is kept."""
    return re.sub(r"^<!-- kbprobe:(?:begin|end) [^\n]*-->\n?", "", text, flags=re.MULTILINE)
