"""The records of a built probe: of the rows that are there, and in the card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kbprobe.format.dataset import CARD
from kbprobe.format.manifest import MANIFEST
from release.checks.findings import Finding, failure
from release.records import Name

if TYPE_CHECKING:
    from kbprobe.format.manifest import Manifest, Record

AGAIN: Mapping[Name, str] = {
    "reading": "Have this build read: build-probe --sample N --blind, release-probe annotate score "
    "--into-card.",
    "adversaries": "Run release-probe check --deep --into-card again.",
}


def record_findings(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """Check the records: that they are of these rows, and in the card."""
    records: dict[Name, Record | None] = {
        "reading": manifest.reading,
        "adversaries": manifest.adversaries,
    }
    for record, entry in records.items():
        if entry is None:
            continue
        name, remedy = f"{record} on record", AGAIN[record]
        summary = entry.summary
        if entry.rows_digest != manifest.rows_digest:
            yield failure(name, "it is of other rows than these", MANIFEST, remedy)
        elif summary.casefold() not in card_text(folder).casefold():
            yield failure(name, f"the card does not say: {summary}", CARD, remedy)
        else:
            yield Finding(name, "ok" if entry.passed else "warning", summary)


def card_text(folder: Path) -> str:
    """Return the text of a probe's card; empty where it cannot be read."""
    try:
        return (folder / CARD).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""  # Another finding says so.
