"""The card of a repository: generated text between marks, everything else the owner's.

A repository's card has a part for each probe in it. Sections that somebody edited between the marks
are kept too, as long as what is generated there has not changed as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kbprobe.errors import UsageError
from kbprobe.format.setups import DEFAULT_CONFIG
from release.cards import join_card, parse_header, sections, split_header
from release.hub.merge import Merge, Prefer

_MARKS = re.compile(
    r"^<!-- kbprobe:begin (?P<name>\S+) [^\n]*-->\n"
    r"(?P<block>.*?)"
    r"^<!-- kbprobe:end (?P=name) -->\n?",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class GeneratedCard:
    """What was generated for the card when a probe was published, as ``release.json`` keeps it.

    Attributes:
        front: entries of the front matter.
        sections: digest of each section, by its heading.
    """

    front: Mapping[str, Any] = field(default_factory=dict)
    sections: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, front: Mapping[str, Any], text: str) -> GeneratedCard:
        """Record what is generated, for the next publication."""
        return cls(dict(front), {name: digest(part) for name, part in sections(text).items()})


@dataclass(frozen=True)
class MergedCard:
    """A card to be published; ``kept`` names sections and entries that somebody else wrote."""

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
    """Merge what is generated for a probe, ``front`` and ``text``, into a repository's card.

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
    """Write ``dataset_info`` and ``configs`` as lists: the Hub accepts single entries too."""
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
    """Put the marks around a probe's part of a card."""
    body = "".join(sections(text).values()).rstrip()
    return (
        f"<!-- kbprobe:begin {name} (release-probe writes everything down to the end mark; text "
        f"outside the marks is kept) -->\n{body}\n<!-- kbprobe:end {name} -->\n"
    )


def unmarked(text: str) -> str:
    """Return the text of a card without marks; what is between them stays."""
    return re.sub(r"^<!-- kbprobe:(?:begin|end) [^\n]*-->\n?", "", text, flags=re.MULTILINE)


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
