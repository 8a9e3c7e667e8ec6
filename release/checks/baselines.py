"""The baselines on record: whether they can be read, are of these rows, and are in the card."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kbprobe.errors import UsageError
from kbprobe.format.baselines import read_baselines
from kbprobe.format.dataset import BASELINES, CARD
from kbprobe.format.manifest import Manifest
from release.checks.findings import Finding, failure
from release.checks.records import card_text

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
