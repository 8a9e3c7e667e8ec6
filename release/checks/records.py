"""Checks of records and baselines: they must be about these rows, and be in the card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kbprobe.errors import UsageError
from kbprobe.format.baselines import read_baselines
from kbprobe.format.dataset import BASELINES, CARD
from kbprobe.format.manifest import MANIFEST, Manifest
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


NAME = "baselines on record"


def baseline_findings(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """Check ``baselines.json``, where there is one, and show its figures."""
    again = f"Measure again: evaluate-probe baselines {folder} --record. Or remove {BASELINES}."
    try:
        figures = read_baselines(folder)
    except UsageError as error:
        yield failure(NAME, str(error), BASELINES, again)
        return
    if figures is None:
        return
    if not figures.is_of(manifest):
        yield failure(NAME, "they are of other rows than these", BASELINES, again)
    elif figures.card_section() not in card_text(folder):
        yield failure(NAME, "the card does not have their table", CARD, again)
    else:
        yield Finding(NAME, "ok", figures.summary)
