"""Reading pairs of premise and hypothesis: RTE's XML, JSON lines and TSV of SNLI, MNLI and GLUE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from xml.etree import ElementTree

from kb_cache.corpora.reading import LONGEST, Skipped
from kbprobe.errors import SourceError, UsageError
from kbprobe.parsing import json_value

#: Names of the columns of pairs in known datasets, by content.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "premise": ("premise", "sentence1", "text1"),
    "hypothesis": ("hypothesis", "sentence2", "text2"),
    "label": ("label", "gold_label", "entailment_judgment"),
    "id": ("id", "pairID", "pair_id", "index", "uid"),
}
#: Labels that stand for a missing label.
_NO_LABEL = ("", "-", "-1", "hidden")


class Pair(NamedTuple):
    """A pair before its texts have tokens."""

    id: str
    premise: str
    hypothesis: str
    label: str | None


def columns_of(
    present: Iterable[str], chosen: Mapping[str, str], where: str
) -> dict[str, str] | None:
    """Return the column of each part of a pair, or None if these are not columns of pairs.

    Raises:
        SourceError: a chosen column is not there.
    """
    there = list(present)
    for what, column in chosen.items():
        if what in COLUMNS and column not in there:
            raise SourceError(f"{where} has no column {column!r}; it has {', '.join(there)}")
    found = {
        what: chosen.get(what) or next((name for name in names if name in there), "")
        for what, names in COLUMNS.items()
    }
    return found if found["premise"] and found["hypothesis"] else None


def pairs_of(
    rows: Iterable[tuple[str, Mapping[str, Any]]],
    columns: Mapping[str, str],
    name: str,
    skipped: Skipped,
    label_names: Mapping[Any, str] | None = None,
) -> Iterator[Pair]:
    """Yield the pairs of rows, each given with its place; those without both texts are counted.

    ``label_names`` are the names of labels that are numbers.
    """
    for number, (where, row) in enumerate(rows, 1):
        premise, hypothesis = (_clean(row.get(columns[part])) for part in ("premise", "hypothesis"))
        if not premise or not hypothesis:
            skipped.add("pairs lack a premise or a hypothesis and were left out", where)
        elif max(len(premise), len(hypothesis)) > LONGEST:
            skipped.add(f"pairs of more than {LONGEST:,} characters were left out", where)
        else:
            label = row.get(columns["label"]) if columns["label"] else None
            if label_names:
                label = label_names.get(label)
            shown = "" if label is None else str(label).strip()
            stated = row.get(columns["id"]) if columns["id"] else None
            id_ = f"{name}-{number}" if stated in (None, "") else str(stated)
            yield Pair(id_, premise, hypothesis, None if shown in _NO_LABEL else shown)


def _clean(text: Any) -> str:
    """Text with single spaces; "" for what is no text."""
    return " ".join(text.split()) if isinstance(text, str) else ""


def json_rows(name: str, text: str, skipped: Skipped) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of JSON lines, each with its place; other lines are counted.

    Raises:
        SourceError: no line is a JSON object.
    """
    count = 0
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}, line {number:,}"
        try:
            row = json_value(line, where)
        except UsageError:
            row = None
        if isinstance(row, dict):
            count += 1
            yield where, row
        else:
            skipped.add("lines that are not JSON objects were left out", where)
    if not count:
        raise SourceError(f"{name} is not JSON lines: no line of it is a JSON object")


def tsv_rows(name: str, text: str, skipped: Skipped) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a TSV with a header, each with its place; short or long ones are counted.

    Quotation marks have no meaning, as in MNLI's files.
    """
    header, *lines = text.split("\n")
    names = header.split("\t")
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        values = line.split("\t")
        where = f"{name}, line {number:,}"
        if len(values) == len(names):
            yield where, dict(zip(names, values, strict=True))
        else:
            skipped.add(
                f"rows do not have the {len(names)} columns of the header and were left out", where
            )


def read_rte(name: str, text: str, skipped: Skipped) -> Iterator[Pair]:
    """Yield the pairs of a file of the RTE challenges.

    A pair's id is that of the file and its own; its label is that of the attribute ``value``
    (RTE 1: TRUE, FALSE) or ``entailment`` (RTE 2 and 3: YES, NO).

    Raises:
        SourceError: it is not XML, or not an entailment corpus.
    """
    try:
        # As text: what a declaration says of the encoding no longer holds. Expat fetches nothing
        # and limits how far entities may expand.
        body = text.partition("?>")[2] if "?>" in text[:200] else text
        root = ElementTree.fromstring(body)  # nosec B314
    except ElementTree.ParseError as error:
        raise SourceError(f"{name} is not well-formed XML: {error}") from error
    if root.tag != "entailment-corpus":
        raise SourceError(
            f"{name} is XML, but no corpus of the RTE challenges: its root is <{root.tag}>, not "
            "<entailment-corpus>"
        )
    stem = PurePosixPath(name).stem
    columns = {"premise": "t", "hypothesis": "h", "label": "label", "id": "id"}
    rows = (
        (
            f"{name}, pair {pair.get('id')}",
            {
                "t": pair.findtext("t"),
                "h": pair.findtext("h"),
                "label": pair.get("value") or pair.get("entailment"),
                "id": f"{stem}-{pair.get('id')}",
            },
        )
        for pair in root.iter("pair")
    )
    return pairs_of(rows, columns, name, skipped)
