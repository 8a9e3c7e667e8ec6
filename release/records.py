"""What was found out about a probe after it was built, written into its folder.

A record is an entry of the manifest and a section of the card. It names the rows that it is about
by their digest: the check of a probe whose rows have changed since says so, and building the probe
anew writes manifest and card without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import write_file
from kbprobe.format.card import with_section
from kbprobe.format.dataset import CARD, damaged_files
from kbprobe.format.manifest import MANIFEST, manifest_text, read_manifest
from kbprobe.targets import taking

Name = Literal["reading", "adversaries"]

TITLES: Mapping[Name, str] = {"reading": "Soundness", "adversaries": "Adversaries"}
"""Record -> its section in the card."""


def record(
    folder: str | Path, name: Name, summary: str, about: Mapping[str, Any], text: str
) -> None:
    """Write a record into a built probe, in place of an earlier one of that name.

    Args:
        folder: the probe.
        name: which record.
        summary: what was found, in a line; the card must hold it too.
        about: what was found, as plain data, for the manifest; ``passed`` says whether all is well.
        text: the same as Markdown, for the card.

    Raises:
        UsageError: the folder holds no probe, or its card cannot be read.
        KbprobeError: a data file is missing or damaged: nothing is written about other rows.
        OSError: a file cannot be written.
    """
    with taking(Path(folder), f"recording {name}", {"summary": summary, **about}):
        _record(Path(folder), name, summary, about, text)


def _record(folder: Path, name: Name, summary: str, about: Mapping[str, Any], text: str) -> None:
    manifest = read_manifest(folder)
    if damage := damaged_files(folder, manifest.files):
        raise KbprobeError(f"{folder}: {damage[0]}. Build the probe again.")
    try:
        card = (folder / CARD).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{folder / CARD} cannot be read: {error}. Build it again.") from None
    entry = {"rows_digest": manifest.rows_digest, "summary": summary, **about}
    # The card first: a manifest whose record the card lacks would fail the check.
    write_file(
        folder / CARD,
        with_section(card, TITLES[name], f"{summary[:1].upper()}{summary[1:]}.\n\n{text}"),
    )
    write_file(folder / MANIFEST, manifest_text({**manifest.content, name: entry}))
