"""The source of a corpus: its files, in recognised formats, read into documents.

Formats are recognized by the contents of files: CoNLL-U, tagged text, RTE's XML, a table with a
header (TSV of SNLI, MNLI and GLUE), JSON lines; anything else is plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from xml.etree import ElementTree

from kb_cache.base import Source
from kb_cache.corpora.conllu import is_conllu, read_conllu
from kb_cache.corpora.reading import LONGEST, Skipped, read_all, texts_of
from kb_cache.corpora.rows import RawDocument
from kb_cache.corpora.tagged import CATEGORIES, genres_of, is_tagged, read_tagged
from kb_cache.hub import PREFIX, HubTable, read_hub
from kb_cache.unpack import sha256_of
from kbprobe.errors import SourceError, UsageError
from kbprobe.parsing import json_value

#: Names of the columns of pairs in known datasets, by content.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "premise": ("premise", "sentence1", "text1"),
    "hypothesis": ("hypothesis", "sentence2", "text2"),
    "label": ("label", "gold_label", "entailment_judgment"),
    "id": ("id", "pairID", "pair_id", "index", "uid"),
}
#: Labels that mean a missing label.
_NO_LABEL = ("", "-", "-1", "hidden")


class PlainPair(NamedTuple):
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
) -> Iterator[PlainPair]:
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
            yield PlainPair(id_, premise, hypothesis, None if shown in _NO_LABEL else shown)


def _clean(text: Any) -> str:
    """Return text with single spaces; "" for anything that is not text."""
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


def read_rte(name: str, text: str, skipped: Skipped) -> Iterator[PlainPair]:
    """Yield the pairs of a file of the RTE challenges.

    A pair's id is that of the file and its own; its label is that of the attribute ``value``
    (RTE 1: TRUE, FALSE) or ``entailment`` (RTE 2 and 3: YES, NO).

    Raises:
        SourceError: it is not XML, or not an entailment corpus.
    """
    try:
        # As text, since the declared encoding no longer applies. Expat fetches nothing and limits
        # the expansion of entities.
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


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+-]+")
_ENDINGS = re.compile(
    r"(\.(txt|text|jsonl|ndjson|json|conllu|tsv|xml|gz|bz2|zip|tar|tgz))+$", re.IGNORECASE
)
_JSON = (".jsonl", ".ndjson", ".json")
_NAME_WORDS = 3
"""Words of the longest names of columns, such as MRPC's "#1 String"."""
_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?\s*")


class PlainDocument(NamedTuple):
    """A document without sentences or tokens."""

    id: str
    paragraphs: Sequence[str]
    has_paragraphs: bool
    genre: str | None = None


@dataclass(frozen=True)
class CorpusSource(Source):
    """The files of a corpus, or the tables of a dataset on the Hub, in memory."""

    files: Mapping[str, bytes]
    tables: Sequence[HubTable] = ()


def read_source(path: Path) -> CorpusSource:
    """Read and hash the files of a file, folder or archive, or a dataset ("hub:ID").

    Raises:
        SourceError: they cannot be read.
    """
    address = str(path)
    if address.startswith(PREFIX):
        tables = read_hub(address)
        hashes = {table.name: table.sha256() for table in tables}
        stem = PurePosixPath(address.removeprefix(PREFIX)).name
        return CorpusSource(path, hashes, _named(stem), {}, tables)
    files = read_all(path)
    return CorpusSource(path, sha256_of(files), _named(_ENDINGS.sub("", path.name)), files)


def _named(stem: str) -> str:
    return _NOT_IN_NAMES.sub("-", stem).strip("-.")


def read_items(
    source: CorpusSource, columns: Mapping[str, str], skipped: Skipped
) -> Iterator[RawDocument | PlainDocument | PlainPair]:
    """Yield the documents and pairs of a source, in the order of its files.

    Args:
        source: where they are.
        columns: unusual names of columns: content -> name.
        skipped: collects what is left out.

    Raises:
        SourceError: a file is malformed, or a table has other columns; the message names it.
    """
    for table in source.tables:
        yield from _of_rows(table, table.name, columns, skipped)
    texts = dict(texts_of(source.files, skipped))
    genres: dict[str, str] = {}
    for name in [name for name in texts if PurePosixPath(name).name == CATEGORIES]:
        genres |= genres_of(texts.pop(name))
    for name, text in texts.items():
        yield from _of_file(name, text, columns, genres, skipped)


def _of_file(
    name: str,
    text: str,
    columns: Mapping[str, str],
    genres: Mapping[str, str],
    skipped: Skipped,
) -> Iterator[RawDocument | PlainDocument | PlainPair]:
    lower = name.lower()
    header = text.partition("\n")[0].split("\t")
    if lower.endswith(_JSON):
        yield from _of_json(name, text, columns, skipped)
    elif lower.endswith(".xml"):
        yield from read_rte(name, text, skipped)
    elif lower.endswith(".conllu") or is_conllu(text):
        yield from read_conllu(name, text, skipped)
    elif lower.endswith(".tsv") or (len(header) > 1 and columns_of(header, {}, name)):
        if _is_data(header):
            raise SourceError(
                f"{name} has no header: its first row is one of data ({', '.join(header)[:80]}). "
                f"Put a row with the names of its {len(header)} columns first, separated by tabs: "
                "premise, hypothesis, label and id are known, and --columns maps others"
            )
        found = columns_of(header, columns, name)
        if found is None:
            raise _other_columns(name, header, "premise=NAME,hypothesis=NAME,label=NAME")
        yield from pairs_of(tsv_rows(name, text, skipped), found, name, skipped)
    elif is_tagged(text):
        document = read_tagged(name, text, genres, skipped)
        yield from [document] if document else []
    else:
        yield _plain(_ENDINGS.sub("", name), text)


def _is_data(cells: Sequence[str]) -> bool:
    """Return whether the first row of a table holds values, not names: sentences or numbers."""
    return any(len(cell.split()) > _NAME_WORDS or _NUMBER.fullmatch(cell) for cell in cells)


def _plain(id_: str, text: str, genre: str | None = None) -> PlainDocument:
    """Divide a text at blank lines."""
    paragraphs = [part for part in re.split(r"\n[^\S\n]*\n", text) if part.strip()]
    return PlainDocument(id_, paragraphs, len(paragraphs) > 1, genre)


def _of_json(
    name: str, text: str, columns: Mapping[str, str], skipped: Skipped
) -> Iterator[PlainDocument | PlainPair]:
    """Yield what the rows of JSON lines hold, or those of one JSON list of objects."""
    if text.lstrip().startswith("["):
        placed = list(_list_rows(name, json_value(text, name), skipped))
    else:
        placed = list(json_rows(name, text, skipped))
    yield from _of_rows(_TableRows(_ENDINGS.sub("", name), placed), name, columns, skipped)


def _list_rows(
    name: str, rows: Sequence[Any], skipped: Skipped
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a list, each with its place; other items are counted."""
    for number, row in enumerate(rows, 1):
        where = f"{name}, item {number:,}"
        if isinstance(row, dict):
            yield where, row
        else:
            skipped.add("items that are not JSON objects were left out", where)


@dataclass(frozen=True)
class _TableRows:
    """Rows of a file, each with its place; see `kb_cache.corpora.source.HubTable`."""

    name: str
    rows: list[tuple[str, dict[str, Any]]]

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for _, row in self.rows for name in row))

    def label_names(self, column: str) -> None:
        return None

    def placed(self) -> Iterator[tuple[str, dict[str, Any]]]:
        yield from self.rows


def _of_rows(
    table: HubTable | _TableRows, source: str, columns: Mapping[str, str], skipped: Skipped
) -> Iterator[PlainDocument | PlainPair]:
    """Yield the pairs, or else the documents, of a table; messages call it ``source``."""
    present = table.columns
    found = columns_of(present, columns, table.name)
    if found is not None:
        names = table.label_names(found["label"])
        yield from pairs_of(table.placed(), found, table.name, skipped, names)
        return
    column = columns.get("text", "text")
    if column not in present:
        raise _other_columns(source, present, "text=NAME or premise=NAME,hypothesis=NAME")
    for number, (where, row) in enumerate(table.placed(), 1):
        text = row.get(column)
        if isinstance(text, list) and all(isinstance(part, str) for part in text):
            text = "\n\n".join(text)
        if not isinstance(text, str) or not text.strip():
            skipped.add("empty documents were left out", where)
            continue
        stated, genre = row.get("id"), row.get("genre")
        id_ = f"{table.name}-{number}" if stated in (None, "") else str(stated)
        yield _plain(id_, text, genre if isinstance(genre, str) else None)


def _other_columns(name: str, present: Sequence[str], wanted: str) -> SourceError:
    if not present:
        return SourceError(f"{name} has no rows: no line or item of it is a JSON object")
    return SourceError(
        f"{name} has neither the columns of pairs (premise and hypothesis, or sentence1 and "
        f"sentence2) nor text; it has {', '.join(present[:20])}. Say which are which with "
        f"--columns {wanted}"
    )
