"""The sections of a card's text, and writing what was found out about a probe into them."""

from __future__ import annotations

import re
from collections.abc import Iterator

BEFORE = ("Screen", "Left out", "Build it again", "Licence")
"""Sections before the first of which those stand that are added to a card later."""


def titled_lines(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield each line with its end, and its title where it is a heading of the second level.

    Lines of code that look like headings are not headings.
    """
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = re.match(r"\s*(```+|~~~+)", line)
        heading = not mark and not fence and line.startswith("## ")
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
        yield line, line.removeprefix("## ").strip() if heading else None


def with_section(card: str, title: str, body: str) -> str:
    """Return a card with a section, in place of one of that title or before those of `BEFORE`.

    All else stays as it is written.
    """
    starts = _headings(card)
    names = list(starts)
    new = f"## {title}\n\n{body.strip()}\n\n"
    if title in starts:
        after = names[names.index(title) + 1 :]
        end = starts[after[0]] if after else len(card)
        return card[: starts[title]] + (new if after else new[:-1]) + card[end:]
    at = next((starts[name] for name in names if name in BEFORE), None)
    if at is None:
        return f"{card.rstrip()}\n\n{new[:-1]}"
    return card[:at] + new + card[at:]


def _headings(card: str) -> dict[str, int]:
    """Return where each section of a card begins; lines of code that look so are no headings."""
    starts: dict[str, int] = {}
    at = 0
    for line, title in titled_lines(card):
        if title is not None:
            starts.setdefault(title, at)
        at += len(line)
    return starts
