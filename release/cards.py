"""Reading and writing cards: front matter, text, sections, and records of what was found out.

``huggingface_hub.DatasetCard`` also parses front matter, but rewrites all of it: comments and the
formatting of unchanged entries would be lost. So entries are kept here as they are written.

A record is an entry of the manifest and a section of the card. It identifies the rows that it
concerns by their digest: the check reports if the probe's rows have changed since, and rebuilding
the probe writes manifest and card without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kbprobe.errors import UsageError
from kbprobe.files import write_file
from kbprobe.files.targets import taking
from kbprobe.format.card import titled_lines, with_section
from kbprobe.format.dataset import CARD, read_sound
from kbprobe.format.manifest import MANIFEST, manifest_text
from kbprobe.format.setups import DEFAULT_CONFIG

if TYPE_CHECKING:
    from kbprobe.format.licences import SourceRecord
    from kbprobe.format.manifest import KnowledgeBase


LISTED = (
    "language", "annotations_creators", "source_datasets", "task_categories", "task_ids",
    "size_categories", "tags", "configs", "dataset_info",
)  # fmt: skip
"""Entries of front matter to which each probe of a repository adds its own."""

LICENCE = ("license", "license_name", "license_link")

_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"^(?:\"([^\"]+)\"|'([^']+)'|([^\s#:'\"-][^:]*?))\s*:(?:\s|$)")


def split_card(card: str) -> tuple[dict[str, Any], str]:
    """Split a card into its front matter, a mapping (else UsageError), and its text."""
    header, text = split_header(card)
    if not header:
        raise UsageError("the card has no front matter between two lines of ---")
    return parse_header(header), text


def join_card(front: Mapping[str, Any], text: str, header: str = "") -> str:
    """Return a card; the inverse of :func:`split_card`.

    Entries that are unchanged from ``header``, the existing front matter, keep its formatting and
    comments.
    """
    start, written = _entries(header)
    before = parse_header(header)
    parts = [
        written[name] if name in written and before.get(name) == value else yaml_text({name: value})
        for name, value in front.items()
    ]
    return f"---\n{start}{''.join(parts)}---\n{text}"


def split_header(card: str) -> tuple[str, str]:
    """Split a card into the source of its front matter, empty if there is none, and the rest."""
    found = _FRONT.match(card)
    return (found[1], card[found.end() :]) if found else ("", card)


def parse_header(header: str) -> dict[str, Any]:
    """Read the source of front matter; empty if it holds nothing but comments.

    Raises:
        UsageError: it is not a YAML mapping.
    """
    from kbprobe.parsing import yaml_value

    front = yaml_value(header, "the card's front matter")
    if front is None:
        return {}
    if not isinstance(front, dict):
        raise UsageError("the card's front matter is not a mapping")
    return front


def listed(value: Any) -> list[Any]:
    """Return an entry of front matter, single or a list or missing, as a list."""
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def by_config(entries: Any) -> dict[str, Mapping[str, Any]]:
    """Return the entries of ``configs`` or ``dataset_info`` by the name of their config."""
    found = [entry for entry in listed(entries) if isinstance(entry, Mapping)]
    return {str(entry.get("config_name", DEFAULT_CONFIG)): entry for entry in found}


def data_paths(config: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the splits and paths that an entry of ``configs`` lists."""
    files = [entry for entry in listed(config.get("data_files")) if isinstance(entry, Mapping)]
    return {
        (str(entry.get("split")), str(path))
        for entry in files
        for path in listed(entry.get("path"))
    }


def sections(text: str) -> dict[str, str]:
    """Split a text at its headings of the second level; what comes before them has no name.

    Lines of code that look like headings are not headings. Each part ends with one empty line.
    """
    found: dict[str, str] = {}
    name = ""
    for line, title in titled_lines(text.strip("\n")):
        if title is not None:
            name, number = title, 1
            while name in found:
                number += 1
                name = f"{title} ({number})"
        found[name] = found.get(name, "") + line.splitlines()[0] + "\n"
    return {key: part.rstrip("\n") + "\n\n" for key, part in found.items()}


def yaml_text(content: Mapping[str, Any]) -> str:
    """Write a mapping as YAML, its entries in order."""
    import yaml

    return str(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=1000))


def _entries(header: str) -> tuple[str, dict[str, str]]:
    """Split front matter into its top-level entries, each with the comments above it.

    Returns:
        What comes before the first entry and is not a comment, and the source of each entry.
    """
    entries: dict[str, str] = {}
    waiting = name = ""
    for line in header.splitlines(keepends=True):
        if found := _KEY.match(line):
            name = next(filter(None, found.groups()))
            entries[name] = waiting + line
        elif line.startswith("#") or not name or (not line.strip() and waiting):
            waiting += line
            continue
        else:
            entries[name] += waiting + line
        waiting = ""
    if waiting and name:
        entries[name] += waiting
        waiting = ""
    return waiting, entries


def credited(base: KnowledgeBase) -> list[SourceRecord]:
    """Return each source of a probe with its attribution and citation."""
    from kbprobe.format.licences import sources_of

    return sources_of(base.model_dump(exclude_unset=True))


Name = Literal["reading", "adversaries"]

TITLES: Mapping[Name, str] = {"reading": "Soundness", "adversaries": "Adversaries"}
"""Record -> its section in the card."""


def record(
    folder: str | Path, name: Name, summary: str, about: Mapping[str, Any], text: str
) -> None:
    """Write a record into a built probe, replacing an earlier one of that name.

    ``summary`` is the result in one line, which the card must contain as well; ``passed`` in
    ``about`` says whether it is satisfactory.

    Raises:
        UsageError: the folder holds no probe, or its card cannot be read.
        KbprobeError: a data file is missing or damaged: nothing is written about other rows.
        OSError: a file cannot be written.
    """
    folder = Path(folder)
    with taking(folder):
        manifest, card = read_sound(folder)
        entry = {"rows_digest": manifest.rows_digest, "summary": summary, **about}
        section = f"{summary[:1].upper()}{summary[1:]}.\n\n{text}"
        # The card first: a manifest whose record the card lacks would fail the check.
        write_file(folder / CARD, with_section(card, TITLES[name], section))
        write_file(folder / MANIFEST, manifest_text({**manifest.content, name: entry}))
