"""Reading tables of facts: CSV, TSV, JSON lines and Parquet.

A table is *long*, with a row for each fact and columns for subject, relation and object, or *wide*,
with a row for each subject and a column for each relation. Values are texts: numbers and dates are
read as they are written. Everything that is left out is counted, by reason.

Cost: O(rows log rows), in Arrow and NumPy; a table of five million rows takes some 3 GB of memory.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from kb_cache.base import readable, version_of
from kb_cache.tables.types import FactTable
from kbprobe.arrays import Bools, Ints, mask_at
from kbprobe.columns import single_chunk
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.files import file_sha256
from kbprobe.format.licences import UNSTATED
from kbprobe.format.setups import SPLITS
from kbprobe.reading import open_file

USUAL: Mapping[str, tuple[str, ...]] = {
    "subject": ("subject", "subject_label", "sub", "sub_label", "head", "s"),
    "relation": ("relation", "predicate", "property", "predicate_id", "rel", "p"),
    "object": ("object", "object_label", "obj", "obj_label", "tail", "o"),
    "kind": ("object_kind", "object_type"),
    "split": ("split",),
    "year": (),
}
"""The usual names of columns, by what they hold; the first that a table has is taken."""

NO_ANSWER = ("-", "--", "?", "n/a", "<na>", "nan", "nat", "none", "null", "unknown", "not known")
"""Values that state nothing, in lower case."""

FIRST_LINE = 1 << 20
"""Maximum length of a header in bytes."""

SPACES = r"[\s\p{Z}]+"


class Layout(NamedTuple):
    """Which columns of a table hold what.

    Attributes:
        subject: the column of subjects.
        relation: the column of relations; empty if the table is wide.
        objects: the column of objects; of a wide table, the columns that are relations.
        kind, split, year: those of the objects' kinds, of splits and of years; empty: none.
    """

    subject: str
    relation: str
    objects: tuple[str, ...]
    kind: str
    split: str
    year: str


def read_facts(
    path: Path, columns: Mapping[str, str], relations: Sequence[str], separator: str
) -> FactTable:
    """Read a table of facts from a file, whose ending says its format; see `facts_of`."""
    with readable(path):
        table = read_table(path)
        digest = file_sha256(path)
    version = version_of(path.name)
    identity = {
        "name": f"table-{version}",
        "version": version,
        "digest": digest,
        "licence": UNSTATED,
    }
    return facts_of(table, str(path), identity, columns, relations, separator)


def facts_of(
    table: pa.Table,
    place: str,
    identity: Mapping[str, Any],
    columns: Mapping[str, str],
    relations: Sequence[str],
    separator: str,
) -> FactTable:
    """Return the facts that a table states.

    Args:
        table: the table.
        place: its name in messages.
        identity: the fields of `kb_cache.knowledge.Loaded`.
        columns: the role of a column (a key of `USUAL`) -> its name, where it has no usual one.
        relations: the relations to read, in a wide table the columns; none: all of a long table.
        separator: what separates several objects in a cell; empty: nothing does.

    Raises:
        UsageError: it is not clear which columns hold what, or there is no fact.
    """
    layout = _layout(place, table.column_names, columns, relations)
    stated = _stated(table, layout, separator)
    left_out: Counter[str] = Counter()
    stated = _clean(stated, relations, left_out)
    if not stated.num_rows:
        reasons = "".join(f"; {reason}: {number:,}" for reason, number in left_out.items())
        raise UsageError(f"{place} states no fact{reasons}")
    both = pa.concat_arrays([single_chunk(stated[end]) for end in ("subject", "object")])
    coded = both.dictionary_encode()
    subject, target = np.split(coded.indices.to_numpy().astype(np.int64), 2)
    named = single_chunk(stated["relation"]).dictionary_encode()
    relation = named.indices.to_numpy().astype(np.int64)
    key = (subject * len(named.dictionary) + relation) * len(coded.dictionary) + target
    current = _current(place, layout, stated, subject * len(named.dictionary) + relation)
    # Of a fact that is stated for several years, the latest stands for all.
    latest = np.lexsort((~current, key))
    first = np.sort(latest[np.append(True, key[latest][1:] != key[latest][:-1])])
    if first.size < key.size:
        left_out["stated twice"] += key.size - first.size
    kind = single_chunk(stated["kind"]).dictionary_encode().indices.to_numpy().astype(np.int64)
    split = _splits(place, layout, stated, subject)
    return FactTable(
        **identity,
        texts=coded.dictionary,
        relations=tuple(named.dictionary.to_pylist()),
        subject=subject[first],
        relation=relation[first],
        object=target[first],
        current=current[first],
        kind=kind[first],
        split=split[first],
        left_out=dict(left_out),
    )


def read_table(path: Path) -> pa.Table:
    """Read all columns; those of CSV files are texts.

    Raises:
        UsageError: the file is damaged, or not UTF-8.
    """
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
    place: str, names: Sequence[str], columns: Mapping[str, str], relations: Sequence[str]
) -> Layout:
    if unknown := [role for role in columns if role not in USUAL]:
        raise UsageError(
            f"--columns {unknown[0]}=...: there is no such role, but {', '.join(USUAL)}"
        )
    for role, name in columns.items():
        if name not in names:
            raise UsageError(f"--columns {role}={name}: {_no_column(place, name, names)}")
    found = {
        role: columns.get(role) or next((name for name in usual if name in names), "")
        for role, usual in USUAL.items()
    }
    if not found["subject"]:
        raise UsageError(
            f"{place} has no column named subject. Name the one that holds what is asked about, "
            f"such as --columns subject={names[0]}. It has: {', '.join(names)}"
        )
    if found["object"] and not found["relation"] and not relations:
        raise UsageError(
            f"{place} has no column named relation. Name it: --columns relation=NAME. It has: "
            f"{', '.join(names)}"
        )
    others = found["kind"], found["split"], found["year"]
    if found["object"] and found["relation"]:
        return Layout(found["subject"], found["relation"], (found["object"],), *others)
    for name in relations:
        if name not in names:
            raise UsageError(f"--relations {name}: {_no_column(place, name, names)}")
    if not relations:
        rest = [name for name in names if name not in (found["subject"], *others)]
        raise UsageError(
            f"{place} has no columns named relation and object. If each column is a relation, name "
            f"those to ask about, such as --relations {rest[0] if rest else 'NAME'}. It has: "
            f"{', '.join(rest)}"
        )
    return Layout(found["subject"], "", tuple(relations), *others)


def _no_column(place: str, name: str, names: Sequence[str]) -> str:
    return f"{place} has no column {name!r}.{did_you_mean(name, names)} It has: {', '.join(names)}"


def _stated(table: pa.Table, layout: Layout, separator: str) -> pa.Table:
    """Return a row for each value of each cell that states a fact."""
    parts = []
    for column in layout.objects:
        row, values = _values(table, column, separator)
        rest = {
            "subject": layout.subject,
            "relation": layout.relation,
            "kind": layout.kind,
            "split": layout.split,
            "year": layout.year,
        }
        of_row = {
            role: _texts(table, name).take(pa.array(row))
            if name
            else pa.array([column if role == "relation" else ""] * row.size, pa.string())
            for role, name in rest.items()
        }
        parts.append(pa.table({**of_row, "object": values}))
    return pa.concat_tables(parts)


def _values(table: pa.Table, name: str, separator: str) -> tuple[Ints, pa.Array]:
    """Return the values of a column's cells, several where a cell has several, and their rows."""
    column = single_chunk(table[name])
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        texts = _texts(table, name)
        if not separator:
            return np.arange(len(texts), dtype=np.int64), texts
        column = pc.split_pattern(texts, separator)
    row = pc.list_parent_indices(column).to_numpy().astype(np.int64)
    values = pc.list_flatten(column)
    if pa.types.is_nested(values.type):
        raise UsageError(f"the column {name!r} holds {values.type}, not texts or lists of texts")
    return row, pc.fill_null(pc.cast(values, pa.string()), "")


def as_texts(table: pa.Table) -> pa.Table:
    """Return a table whose columns are texts or lists of texts.

    Raises:
        UsageError: a column holds something else.
    """
    columns = {}
    for name in table.column_names:
        column = single_chunk(table[name])
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            columns[name] = pc.cast(column, pa.list_(pa.string()))
        else:
            columns[name] = _texts(table, name)
    return pa.table(columns)


def _texts(table: pa.Table, name: str) -> pa.Array:
    column = single_chunk(table[name])
    if pa.types.is_nested(column.type):
        raise UsageError(f"the column {name!r} holds {column.type}, not texts")
    return pc.fill_null(pc.cast(column, pa.string()), "")


def _clean(stated: pa.Table, relations: Sequence[str], left_out: Counter[str]) -> pa.Table:
    """Normalise the texts, and leave out and count what states nothing."""
    stated = pa.table(
        {
            name: clean(stated[name].combine_chunks()) if name != "relation" else stated[name]
            for name in stated.column_names
        }
    )

    def keep(mask: pa.ChunkedArray, reason: str) -> None:
        nonlocal stated
        kept = stated.filter(mask)
        if kept.num_rows < stated.num_rows:
            left_out[reason] += stated.num_rows - kept.num_rows
        stated = kept

    if relations:
        asked = pc.is_in(stated["relation"], pa.array(relations, pa.string()))
        keep(asked, "of another relation (--relations)")
    for end in ("subject", "object"):
        keep(pc.not_equal(stated[end], ""), "the cell is empty")
        nothing = pc.is_in(pc.utf8_lower(stated[end]), pa.array(NO_ANSWER))
        keep(pc.invert(nothing), f"the cell says nothing ({', '.join(NO_ANSWER[:6])}, ...)")
    keep(pc.not_equal(stated["relation"], ""), "no relation")
    keep(pc.not_equal(stated["subject"], stated["object"]), "subject and object are the same")
    return stated


def clean(texts: pa.Array) -> pa.Array:
    r"""Return texts in composed form, with single spaces.

    >>> clean(pa.array(["  New\u00a0 York\n"]))[0].as_py()
    'New York'
    """
    composed = pc.utf8_normalize(texts, "NFC")
    return pc.utf8_trim(pc.replace_substring_regex(composed, SPACES, " "), " ")


def _splits(place: str, layout: Layout, stated: pa.Table, subject: Ints) -> Ints:
    """Return the split of each fact; a subject is in one."""
    if not layout.split:
        return np.full(subject.size, -1, dtype=np.int64)
    usual = {"dev": "validation", "valid": "validation", "training": "train"}
    named = single_chunk(stated["split"]).dictionary_encode()
    codes = []
    for name in named.dictionary.to_pylist():
        known = usual.get(name.lower(), name.lower())
        if known not in SPLITS:
            raise UsageError(
                f"{place}: column {layout.split!r} has the value {name!r}; splits are "
                f"{', '.join(SPLITS)}"
            )
        codes.append(SPLITS.index(known))
    split: Ints = np.array(codes, dtype=np.int64)[named.indices.to_numpy()]
    low, high = (np.full(int(subject.max()) + 1, start) for start in (len(SPLITS), -1))
    np.minimum.at(low, subject, split)
    np.maximum.at(high, subject, split)
    if (both := np.flatnonzero(low[subject] < high[subject])).size:
        name = stated["subject"][int(both[0])].as_py()
        raise UsageError(f"{place} puts the subject {name!r} in several splits")
    return split


def _current(place: str, layout: Layout, stated: pa.Table, group: Ints) -> Bools:
    """Mark the facts of the latest year of each subject and relation; all if there are no years."""
    if not layout.year:
        return np.ones(group.size, dtype=np.bool_)
    texts = pc.utf8_slice_codeunits(stated["year"], 0, 10)
    wrong = pc.invert(pc.match_substring_regex(texts, r"^-?\d{1,4}(-\d\d){0,2}$|^$"))
    if pc.any(wrong).as_py():
        value = texts.filter(wrong)[0].as_py()
        raise UsageError(
            f"{place}: column {layout.year!r} has the value {value!r}, which is no year (2024) and "
            f"no date (2024-05-31)"
        )
    # Dates as numbers: 2024-05-31 is 20240531; a missing year is the earliest.
    number = np.array([_date(text) for text in texts.to_pylist()], dtype=np.int64)
    order = np.lexsort((number, group))
    last = np.flatnonzero(np.append(group[order][1:] != group[order][:-1], True))
    latest = np.zeros(int(group.max()) + 1, dtype=np.int64)
    latest[group[order][last]] = number[order][last]
    return mask_at(group.size, np.flatnonzero(number == latest[group]))


def _date(text: str) -> int:
    if not text:
        return -(10**9)
    sign = -1 if text.startswith("-") else 1
    year, month, day = [*map(int, text.lstrip("-").split("-")), 0, 0][:3]
    return sign * year * 10_000 + month * 100 + day
