"""Reading tables of facts: CSV, TSV, JSON lines and Parquet.

A table is *long*, with a row for each fact and columns for subject, relation and object, or *wide*,
with a row for each subject and a column for each relation. Values are texts: numbers and dates are
read as they are written. Everything that is left out is counted, by reason.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from kb_cache.base import UNSTATED, readable, version_of
from kb_cache.tables.types import FactTable
from kbprobe.columns import single_chunk
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.files import file_sha256
from kbprobe.reading import open_file

USUAL: Mapping[str, tuple[str, ...]] = {
    "subject": ("subject", "subject_label", "sub", "sub_label", "head", "s"),
    "relation": ("relation", "predicate", "property", "predicate_id", "rel", "p"),
    "object": ("object", "object_label", "obj", "obj_label", "tail", "o"),
}
"""The usual names of columns, by what they hold; the first that a table has is taken."""

NO_ANSWER = ("", "-", "--", "?", "n/a", "na", "nan", "none", "null", "unknown", "not known")
"""Values that state nothing, in lower case."""

FIRST_LINE = 1 << 20
"""Maximum length of a header in bytes."""


class Layout(NamedTuple):
    """Which columns of a table hold what.

    Attributes:
        subject: the column of subjects.
        relation: the column of relations; empty if the table is wide.
        object: the column of objects; empty if the table is wide.
        wide: the columns that are relations, if the table is wide.
    """

    subject: str
    relation: str
    object: str
    wide: tuple[str, ...]


def read_facts(
    path: Path, columns: Mapping[str, str], relations: Sequence[str], separator: str
) -> FactTable:
    """Read a table of facts.

    Args:
        path: the file; its ending says its format.
        columns: ``subject``, ``relation`` and ``object`` -> the column that holds it, where it has
            no usual name.
        relations: the relations to read, in a wide table the columns; none: all of a long table.
        separator: what separates several objects in a cell; empty: nothing does.

    Raises:
        UsageError: the file cannot be read, or it is not clear which columns hold what.
    """
    with readable(path):
        table = _read(path)
        digest = file_sha256(path)
    layout = _layout(path, table.column_names, columns, relations)
    left_out: Counter[str] = Counter()
    triples = dict.fromkeys(_triples(table, layout, relations, separator, left_out))
    if not triples:
        raise UsageError(f"{path} states no fact{_why(left_out)}")
    names = list(dict.fromkeys(relation for _, relation, _ in triples))
    number: dict[str, int] = {}
    codes = [
        (
            number.setdefault(one, len(number)),
            names.index(name),
            number.setdefault(other, len(number)),
        )
        for one, name, other in triples
    ]
    subject, relation, target = np.array(codes, dtype=np.int64).T
    version = version_of(path.name)
    return FactTable(
        f"table-{version}",
        version,
        digest,
        UNSTATED,
        texts=pa.array(list(number), pa.string()),
        relations=tuple(names),
        subject=subject,
        relation=relation,
        object=target,
        left_out=dict(left_out),
    )


def _why(left_out: Mapping[str, int]) -> str:
    reasons = "; ".join(f"{reason} ({count:,})" for reason, count in left_out.items())
    return f". Left out: {reasons}" if reasons else ""


def _read(path: Path) -> pa.Table:
    """Read all columns; those of CSV files are texts."""
    ending = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    try:
        if ending == "parquet":
            return pq.read_table(path)
        with open_file(path) as raw:
            file = pa.input_stream(raw, compression="gzip" if path.suffix == ".gz" else None)
            if ending == "jsonl":
                return pyarrow.json.read_json(file)
            return _read_csv(path, file.read(), "\t" if ending == "tsv" else ",")
    except pa.ArrowInvalid as error:
        raise UsageError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def _read_csv(path: Path, content: bytes, delimiter: str) -> pa.Table:
    header = next(csv.reader(_first_lines(path, content), delimiter=delimiter), [])
    if twice := [name for name, times in Counter(header).items() if times > 1]:
        raise UsageError(f"{path} has two columns {twice[0]!r}; rename one of them")
    wrong: list[str] = []

    def skipped(row: pyarrow.csv.InvalidRow) -> str:
        wrong.append(
            f"row {row.number or '?'} has {row.actual_columns} columns instead of "
            f"{row.expected_columns}"
        )
        return "skip"

    table = pyarrow.csv.read_csv(
        io.BytesIO(content),
        read_options=pyarrow.csv.ReadOptions(use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skipped
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False
        ),
    )
    if wrong:
        raise UsageError(
            f"{path}: {wrong[0]}, and so {len(wrong):,} rows in all. Correct them, or quote "
            f"values that contain {'a tab' if delimiter == chr(9) else 'a comma'}."
        )
    return table


def _first_lines(path: Path, content: bytes) -> io.StringIO:
    try:
        return io.StringIO(content[:FIRST_LINE].decode("utf-8-sig", errors="strict"))
    except UnicodeDecodeError as error:
        if error.start > FIRST_LINE - 8:
            return io.StringIO(content[: error.start].decode("utf-8-sig"))
        raise UsageError(
            f"{path} is not UTF-8 (byte {error.start:,}). Save it in that encoding."
        ) from error


def _layout(
    path: Path, names: Sequence[str], columns: Mapping[str, str], relations: Sequence[str]
) -> Layout:
    if unknown := [role for role in columns if role not in USUAL]:
        raise UsageError(f"--columns {unknown[0]}=...: there are subject, relation and object")
    for role, name in columns.items():
        if name not in names:
            raise UsageError(f"--columns {role}={name}: {_no_column(path, name, names)}")
    found = {
        role: columns.get(role) or next((name for name in usual if name in names), "")
        for role, usual in USUAL.items()
    }
    if not found["subject"]:
        raise UsageError(
            f"{path} has no column named subject. Name the one that holds what is asked about, such "
            f"as --columns subject={names[0]}. It has: {', '.join(names)}"
        )
    if found["object"] and not found["relation"] and not relations:
        raise UsageError(
            f"{path} has no column named relation. Name it: --columns relation=NAME. It has: "
            f"{', '.join(names)}"
        )
    if found["object"] and found["relation"]:
        return Layout(found["subject"], found["relation"], found["object"], ())
    for name in relations:
        if name not in names:
            raise UsageError(f"--relations {name}: {_no_column(path, name, names)}")
    if not relations:
        others = [name for name in names if name != found["subject"]]
        raise UsageError(
            f"{path} has no columns named relation and object. If each column is a relation, name "
            f"those to ask about, such as --relations {others[0] if others else 'NAME'}. It has: "
            f"{', '.join(others)}"
        )
    return Layout(found["subject"], "", "", tuple(relations))


def _no_column(path: Path, name: str, names: Sequence[str]) -> str:
    return f"{path} has no column {name!r}.{did_you_mean(name, names)} It has: {', '.join(names)}"


def _triples(
    table: pa.Table,
    layout: Layout,
    relations: Sequence[str],
    separator: str,
    left_out: Counter[str],
) -> Iterator[tuple[str, str, str]]:
    """Yield each fact that the table states, in its order; repeated ones are counted."""
    subjects = _texts(table, layout.subject)
    columns = layout.wide or (layout.object,)
    pairs = [(name, _texts(table, name)) for name in columns]
    named = _texts(table, layout.relation) if layout.relation else None
    seen: set[tuple[str, str, str]] = set()
    for name, cells in pairs:
        for line, (own, cell) in enumerate(zip(subjects, cells, strict=True)):
            relation = name if named is None else " ".join(named[line])
            if relations and relation not in relations:
                left_out["of another relation (--relations)"] += 1
                continue
            values = [
                part
                for value in cell
                for part in (value.split(separator) if separator else [value])
            ]
            subject = clean(" ".join(own))
            if not values:
                left_out["the cell is empty"] += 1
            for value in map(clean, values):
                fact = subject, str(relation), value
                if not value or not subject:
                    left_out["the cell is empty"] += 1
                elif value.lower() in NO_ANSWER or subject.lower() in NO_ANSWER:
                    left_out[f"the cell says nothing ({', '.join(NO_ANSWER[1:6])}, ...)"] += 1
                elif not relation:
                    left_out["no relation"] += 1
                elif value == subject:
                    left_out["subject and object are the same"] += 1
                elif fact in seen:
                    left_out["stated twice"] += 1
                else:
                    seen.add(fact)
                    yield fact


def _texts(table: pa.Table, name: str) -> list[list[str]]:
    """Return the values of each cell of a column: one, or those of a list."""
    column = single_chunk(table[name])
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return [[str(one) for one in cell or () if one is not None] for cell in column.to_pylist()]
    if pa.types.is_struct(column.type):
        raise UsageError(f"the column {name!r} holds objects, not texts or lists of texts")
    texts = column if pa.types.is_string(column.type) else pc.cast(column, pa.string())
    return [[] if text is None else [text] for text in texts.to_pylist()]


def clean(text: str) -> str:
    r"""Return a text in composed form, with single spaces.

    >>> clean("  New\u00a0 York\n")
    'New York'
    """
    return " ".join(unicodedata.normalize("NFC", text).split())
