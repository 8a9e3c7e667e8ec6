"""The facts that a table states.

A table is *long*, with a row for each fact and columns for subject, relation and object, or *wide*,
with a row for each subject and a column for each relation. Everything that is left out is counted,
by reason.

Cost: O(rows log rows), in Arrow and NumPy.
"""

from __future__ import annotations

import ast
import json
import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kb_cache.array_files import derived_dir
from kb_cache.base import own_identity, readable
from kb_cache.tables.read import TRIPLE, read_table
from kb_cache.tables.types import FactTable
from kbprobe.arrays import Bools, Ints, mask_at, occurrences
from kbprobe.columns import single_chunk
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.files import file_sha256
from kbprobe.format.licences import UNSTATED
from kbprobe.format.setups import SPLITS

logger = logging.getLogger(__name__)

USUAL: Mapping[str, tuple[str, ...]] = {
    "subject": ("subject", "subject_label", "sub", "sub_label", "head", "s"),
    "relation": ("relation", "predicate", "property", "predicate_id", "rel", "p"),
    "object": ("object", "object_label", "obj", "obj_label", "tail", "o"),
    "kind": ("object_kind", "object_type"),
    "subject_kind": ("subject_kind", "subject_type"),
    "other_names": ("object_aliases", "o_aliases"),
    "sentence": (),
    "split": ("split",),
    "year": (),
}
"""The usual names of columns, by what they hold; the first that a table has is taken."""

SEPARATORS, LISTED = ("|", ";"), 0.2
"""What may separate several objects in a cell, and in what share of cells it makes one wonder."""

NO_ANSWER = ("-", "--", "?", "n/a", "<na>", "nan", "nat", "none", "null", "unknown", "not known")
"""Values that state nothing, in lower case."""

SHORT = 3
"""Objects of at most so many letters may occur in a sentence by chance."""

SPACES, INVISIBLE = r"[\s\p{Z}\p{Cc}]+", "[\u200b\ufeff\u00ad]"

_SUBJECT, _OBJECT = re.compile(r"\[X\]|\[SUBJECT\]"), re.compile(r"\[Y\]|\[MASK\]|<mask>|_{2,}")
"""What stands for the subject and for the object in sentences, as in LAMA and its successors."""


PYTHON_TABLES = "tables"
"""The folder of what the cache derives in which tables of Python's values are kept."""


class Layout(NamedTuple):
    """Which columns of a table hold what.

    Attributes:
        objects: the column of objects; of a wide table, the columns that are relations.
        others: role -> the column of the subjects and of all else that a row states; empty: none.
            A wide table has no column of relations.
    """

    objects: tuple[str, ...]
    others: Mapping[str, str]


class TableReading(NamedTuple):
    """How a table is read.

    Attributes:
        columns: the role of a column (a key of `USUAL`) -> its name, where it has no usual one.
        relations: the relations to read, in a wide table the columns; none: all of a long table.
        separator: what separates several objects in a cell; empty: nothing does.
        no_answer: further texts of cells that state nothing.
    """

    columns: Mapping[str, str]
    relations: Sequence[str] = ()
    separator: str = ""
    no_answer: Sequence[str] = ()


def read_facts(path: Path, how: TableReading) -> FactTable:
    """Read a table of facts from a file, whose ending says its format; see `facts_of`."""
    with readable(path):
        table = read_table(path)
        digest = file_sha256(path)
    identity = {**own_identity("table", path.name, digest), "licence": UNSTATED}
    from_python = path.parent == derived_dir() / PYTHON_TABLES
    return facts_of(table, "the table" if from_python else str(path), identity, how)


def facts_of(
    table: pa.Table, place: str, identity: Mapping[str, Any], how: TableReading
) -> FactTable:
    """Return the facts that a table states.

    Args:
        table: the table.
        place: its name in messages.
        identity: the fields of `kb_cache.knowledge.Loaded`.
        how: how it is read.

    Raises:
        UsageError: it is not clear which columns hold what, or there is no fact.
    """
    layout = _layout(place, table.column_names, how.columns, how.relations)
    stated = _stated(table, layout, how.separator)
    left_out: Counter[str] = Counter()
    stated = _clean(stated, [one.lower() for one in how.no_answer], left_out)
    stated = stated.set_column(1, "relation", _spelled_once(stated["relation"]))
    if not stated.num_rows:
        reasons = "".join(f"; {reason}: {number:,}" for reason, number in left_out.items())
        raise UsageError(f"{place} states no fact{reasons}")
    asked = _asked_for(place, stated, layout, how.relations, left_out)
    ends = _spelled_once(pa.chunked_array([*stated["subject"].chunks, *stated["object"].chunks]))
    subjects, objects = ends[: stated.num_rows], ends[stated.num_rows :]
    sentences = _sentences(place, stated) if layout.others["sentence"] else {}
    row, names = _values(table, layout.others["other_names"], how.separator)
    names = clean(names)
    named_at = np.flatnonzero(pc.not_equal(names, "").to_numpy(zero_copy_only=False))
    row, names = row[named_at], names.take(pa.array(named_at))
    named = occurrences(row, stated["row"].to_numpy())
    coded = pa.concat_arrays([subjects, objects, names.take(pa.array(named[1]))])
    coded = coded.dictionary_encode()
    code = coded.indices.to_numpy().astype(np.int64)
    subject, target, other = np.split(code, [stated.num_rows, 2 * stated.num_rows])
    numbered = single_chunk(stated["relation"]).dictionary_encode()
    relation = numbered.indices.to_numpy().astype(np.int64)
    key = (subject * len(numbered.dictionary) + relation) * len(coded.dictionary) + target
    current = _current(place, layout, stated, subject * len(numbered.dictionary) + relation)
    # Of a fact that is stated for several years, the latest stands for all.
    latest = np.lexsort((~current, key))
    first = np.sort(latest[np.append(True, key[latest][1:] != key[latest][:-1])])
    if first.size < key.size:
        left_out["stated twice"] += key.size - first.size
    kind, subject_kind = (
        single_chunk(stated[role]).dictionary_encode().indices.to_numpy().astype(np.int64)
        for role in ("kind", "subject_kind")
    )
    split = _splits(place, layout, stated, subject)
    return FactTable(
        **identity,
        texts=coded.dictionary,
        relations=tuple(numbered.dictionary.to_pylist()),
        asked=asked,
        subject=subject[first],
        relation=relation[first],
        object=target[first],
        current=current[first],
        kind=kind[first],
        subject_kind=subject_kind[first],
        split=split[first],
        other_names=np.stack([target[named[0]], other]),
        sentences=sentences,
        left_out=dict(left_out),
    )


def _layout(
    place: str, names: Sequence[str], columns: Mapping[str, str], relations: Sequence[str]
) -> Layout:
    if unknown := [role for role in columns if role not in USUAL]:
        raise UsageError(
            f"--columns {unknown[0]}=...: there is no such role, but {', '.join(USUAL)}"
        )
    for role, name in columns.items():
        if name and name not in names:
            raise UsageError(f"--columns {role}={name}: {_no_column(place, name, names)}")
    found = {
        role: columns.get(role, next((name for name in usual if name in names), ""))
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
    others = {role: name for role, name in found.items() if role != "object"}
    if found["object"] and found["relation"]:
        return Layout((found["object"],), others)
    if found["sentence"]:
        raise UsageError(f"--columns sentence: {place} needs columns of relations and objects too")
    for name in relations:
        if name not in names:
            raise UsageError(f"--relations {name}: {_no_column(place, name, names)}")
    if not relations:
        rest = [name for name in names if name not in others.values()]
        raise UsageError(
            f"{place} has no columns named relation and object. If each column is a relation, name "
            f"those to ask about, such as --relations {rest[0] if rest else 'NAME'}. It has: "
            f"{', '.join(rest)}"
        )
    return Layout(tuple(relations), {**others, "relation": ""})


def _no_column(place: str, name: str, names: Sequence[str]) -> str:
    return f"{place} has no column {name!r}.{did_you_mean(name, names)} It has: {', '.join(names)}"


def _stated(table: pa.Table, layout: Layout, separator: str) -> pa.Table:
    """Return a row for each value of each cell that states a fact, and the number of its row."""
    parts = []
    for column in layout.objects:
        row, values = _values(table, column, separator)
        of_row = {
            role: single_chunk(table[name]).take(pa.array(row))
            if name
            else pa.array([column if role == "relation" else ""] * row.size, pa.string())
            for role, name in layout.others.items()
            if role != "other_names"
        }
        for role, cells in of_row.items():
            if pa.types.is_list(cells.type):
                name = layout.others[role]
                raise UsageError(f"the column {name!r} ({role}) holds lists, not single values")
        parts.append(pa.table({**of_row, "object": values, "row": row}))
    return pa.concat_tables(parts)


def _values(table: pa.Table, name: str, separator: str) -> tuple[Ints, pa.Array]:
    """Return the values of a column's cells, several where a cell has several, and their rows."""
    if not name:
        return np.empty(0, dtype=np.int64), pa.array([], pa.string())
    column = single_chunk(table[name])
    if not pa.types.is_list(column.type):
        listed = pc.match_substring_regex(column, r"(?s)^\s*\[.*\]\s*$")
        if pc.any(listed).as_py():
            cells = [_cell_values(text) for text in column.to_pylist()]
            column = pa.array(cells, pa.list_(pa.string()))
        elif separator:
            column = pc.split_pattern(column, separator)
        else:
            _suggest_separator(name, column)
            return np.arange(len(column), dtype=np.int64), column
    row = pc.list_parent_indices(column).to_numpy().astype(np.int64)
    return row, pc.fill_null(pc.list_flatten(column), "")


def _suggest_separator(name: str, column: pa.Array) -> None:
    for mark in SEPARATORS:
        count = pc.sum(pc.match_substring(column, mark)).as_py() or 0
        if count > LISTED * len(column):
            logger.warning(
                "%d of %d cells of the column %r contain %r: if they list several objects, say so "
                "with --separator %r",
                count, len(column), name, mark, mark,
            )  # fmt: skip


def _cell_values(text: str) -> list[str]:
    """Return the values of a cell that may be a list as JSON or Python write it."""
    if text.lstrip().startswith("["):
        for read in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, RecursionError):
                values = read(text)
                if isinstance(values, list) and not any(isinstance(v, list | dict) for v in values):
                    return ["" if value is None else str(value) for value in values]
    return [text]


def _clean(stated: pa.Table, no_answer: Sequence[str], left_out: Counter[str]) -> pa.Table:
    """Normalise the texts, and leave out and count what states nothing."""
    texts = {
        name: clean(single_chunk(stated[name])) if name != "row" else stated[name]
        for name in stated.column_names
    }
    stated = pa.table(texts).select([*TRIPLE, *(name for name in texts if name not in TRIPLE)])
    for end in ("subject", "object"):
        stated = _keep(stated, pc.not_equal(stated[end], ""), "the cell is empty", left_out)
        nothing = pc.is_in(pc.utf8_lower(stated[end]), pa.array([*NO_ANSWER, *no_answer]))
        reason = f"the cell states nothing ({', '.join(NO_ANSWER[:6])}, ...)"
        stated = _keep(stated, pc.invert(nothing), reason, left_out)
    return _keep(stated, pc.not_equal(stated["relation"], ""), "no relation", left_out)


def _keep(stated: pa.Table, mask: pa.ChunkedArray, reason: str, left_out: Counter[str]) -> pa.Table:
    kept = stated.filter(mask)
    if kept.num_rows < stated.num_rows:
        left_out[reason] += stated.num_rows - kept.num_rows
    return kept


def _asked_for(
    place: str, stated: pa.Table, layout: Layout, relations: Sequence[str], left_out: Counter[str]
) -> tuple[str, ...]:
    """Return the relations to ask about, as the table spells them; others are known as well.

    Raises:
        UsageError: the table has none of a name.
    """
    known = {folded(name): name for name in stated["relation"].unique().to_pylist()}
    if not relations:
        return tuple(known.values())
    for name in relations:
        if folded(name) not in known and layout.others["relation"]:
            raise UsageError(
                f"--relations {name}: {place} has no such relation."
                f"{did_you_mean(name, known.values())} It has: {', '.join(sorted(known.values()))}"
            )
    asked = tuple(known[folded(name)] for name in relations if folded(name) in known)
    others = pc.invert(pc.is_in(stated["relation"], pa.array(asked, pa.string())))
    if count := pc.sum(others).as_py():
        left_out["of another relation (--relations)"] += count
    return asked


def folded(name: str) -> str:
    """Return a name without case and width, as names of relations and things are compared.

    >>> folded("Born_In") == folded("born in")
    True
    """
    return str(_folded(pa.array([name]))[0])


def _folded(texts: pa.Array) -> pa.Array:
    lowered = pc.utf8_lower(pc.utf8_normalize(texts, "NFKC"))
    return pc.utf8_trim(pc.replace_substring_regex(lowered, r"[_\s]+", " "), " ")


def _spelled_once(column: pa.ChunkedArray) -> pa.Array:
    """Return texts, of which those that differ in case or width only are spelled like the first."""
    coded = single_chunk(column).dictionary_encode()
    same = _folded(coded.dictionary).dictionary_encode()
    _, first = np.unique(same.indices.to_numpy(), return_index=True)
    return coded.dictionary.take(pa.array(first)).take(same.indices).take(coded.indices)


def _sentences(place: str, stated: pa.Table) -> dict[str, str]:
    """Return how the table's own sentence asks for each relation, with ``{}`` for the subject.

    Raises:
        UsageError: one does not name its subject, or goes on after the object, or there are
            several about a relation.
    """
    columns = (stated[name].to_pylist() for name in (*TRIPLE, "sentence"))
    found: dict[str, str] = {}
    for subject, relation, target, text in zip(*columns, strict=True):
        if not text:
            continue
        plain = text.replace("{", "").replace("}", "")
        asked = _SUBJECT.sub("{}", plain)
        if asked == plain:
            asked = _word(subject).sub("{}", plain, count=1)
        placed = _OBJECT.search(asked)
        begun = asked.replace(placed[0], target) if placed else asked
        ended = begun.rstrip(" .")
        if "{}" not in asked:
            raise UsageError(f"{place}: the sentence {text!r} does not name {subject!r}, or [X]")
        inside = len(target) > SHORT and _word(target).search(begun) is not None
        if not ended.endswith(target) and (placed or inside):
            raise UsageError(
                f"{place}: the object must end its sentence, as in '[X] was born in [Y].', or "
                f"be absent, as in a question: {text!r}"
            )
        own = ended.removesuffix(target).strip() if ended.endswith(target) else begun
        if (other := found.setdefault(relation, own)) != own:
            raise UsageError(
                f"{place} asks for {relation!r} in different words, {other!r} and {own!r}; "
                f"sentences may differ in subject and object only. Write wordings with --template"
            )
    return found


def _word(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")


def clean(texts: pa.Array) -> pa.Array:
    r"""Return texts in composed form, with single spaces.

    >>> clean(pa.array(["  New\u00a0 York\n"]))[0].as_py()
    'New York'
    """
    coded = texts.dictionary_encode()
    composed = pc.replace_substring_regex(pc.utf8_normalize(coded.dictionary, "NFC"), INVISIBLE, "")
    spaced = pc.utf8_trim(pc.replace_substring_regex(composed, SPACES, " "), " ")
    return spaced.take(coded.indices)


def _splits(place: str, layout: Layout, stated: pa.Table, subject: Ints) -> Ints:
    """Return the split of each fact; a subject is in one."""
    column = layout.others["split"]
    if not column:
        return np.full(subject.size, -1, dtype=np.int64)
    usual = {"dev": "validation", "valid": "validation", "val": "validation", "training": "train"}
    named = single_chunk(stated["split"]).dictionary_encode()
    codes = []
    for name in named.dictionary.to_pylist():
        known = usual.get(name.lower(), name.lower())
        if known not in SPLITS:
            raise UsageError(
                f"{place}: column {column!r} has the value {name!r}; splits are {', '.join(SPLITS)}"
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
    column = layout.others["year"]
    if not column:
        return np.ones(group.size, dtype=np.bool_)
    texts = pc.utf8_slice_codeunits(stated["year"], 0, 10)
    wrong = pc.invert(pc.match_substring_regex(texts, r"^-?\d{1,4}(-\d\d){0,2}$|^$"))
    if pc.any(wrong).as_py():
        value = texts.filter(wrong)[0].as_py()
        raise UsageError(
            f"{place}: column {column!r} has the value {value!r}, which is no year (2024) and no "
            f"date (2024-05-31)"
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
