"""Rows of any form as questions: brought into kbprobe's schema, checked, and taken as columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.items.columns import ItemColumns
from evaluation.items.recast import LABEL_COLUMNS, PAIRS, meaning
from evaluation.items.rows import (
    ASKED,
    FURTHER,
    LISTED,
    PAIR,
    Records,
    RowProblem,
    normalised,
    read_columns,
    refusal,
    unique_ids,
)
from evaluation.items.types import ABOUT, SplitQuestions, column_questions
from kbprobe.arrays import run_starts
from kbprobe.columns import plain, single_chunk, to_numpy
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import regular_path
from kbprobe.format.rows import CodedRows, Problem, problems
from kbprobe.format.setups import NLI, SETUPS

if TYPE_CHECKING:
    import pyarrow as pa


NEEDED = (*ASKED, *PAIR, "question_stem", "notes", *ABOUT, *FURTHER)
"""All columns that are read."""


def row_questions(records: Records, source: str, label_names: Sequence[str] = ()) -> SplitQuestions:
    """Read every row as a question; ``source`` is what they were read from, for the message.

    Pairs of NLI collections whose annotators agreed on no label are left out and counted.
    ``label_names`` are the names of NLI labels that are numbers, in order from 0.

    Raises:
        KbprobeError: any row is malformed or unlabelled; it names the first few by place and
            field and counts the rest. A file is never scored on its valid rows alone.
    """
    read = normalised(records, label_names)
    rows = CodedRows(read.table)
    found = [*read.problems, *row_problems(rows, read.places)]
    if found or (read.undecided and not read.places):
        found += read.undecided
        total = len(read.places) + len(read.problems) + len(read.undecided)
        raise KbprobeError(refusal(source, records.unit, sorted(found), total))
    notes = {"gold_copies": read.copied, "undecided": len(read.undecided)}
    counted = {name: count for name, count in notes.items() if count}
    return replace(sound_questions(rows), notes=counted)


def row_problems(rows: CodedRows, places: Sequence[int]) -> list[RowProblem]:
    """Return the first problem of each row that cannot be scored, at its place.

    Those that messages list, the first few, are told with their value.
    """
    first: dict[int, Problem] = {}
    for problem in problems(rows):
        if not problem.scorable:
            first = {**dict.fromkeys(problem.rows.tolist(), problem), **first}
    listed = {row: first[row].in_row(rows.table, row) for row in sorted(first)[:LISTED]}
    return [
        RowProblem(places[row], problem.field, listed.get(row, problem.what))
        for row, problem in first.items()
    ]


def in_schema(table: pa.Table) -> bool:
    """Return whether a table needs no conversion: its columns are those of kbprobe's items.

    They have the same types, each row has a setup and an answer, and no list has a null.
    """
    import pyarrow as pa

    from kbprobe.format.items import arrow_schema

    own = arrow_schema()
    if not set(ASKED) <= set(table.column_names) or not set(table.column_names) <= set(own.names):
        return False
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if kind != own.field(field.name).type:
            return False
    lists = {"fact_ids", "choice_hops", "choice_families", "arguments"} & {*table.column_names}
    entries = [single_chunk(table[name]).flatten() for name in lists]
    parts = [part for own in entries if pa.types.is_struct(own.type) for part in own.flatten()]
    complete = [table["setup"], table["answer"], *entries, *parts]
    return not any(column.null_count for column in complete)


def sound_questions(rows: CodedRows) -> SplitQuestions:
    """Return rows of the schema without faults as questions; columns are not converted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {}
    types = read_columns()
    for name in (*ABOUT, *FURTHER):
        column = plain(rows.whole(name))
        if pa.types.is_string(types[name]):
            # Empty text is equivalent to null.
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        columns[name] = column
    for name in ("fact_ids", "arguments"):
        columns[name] = _without_nulls(columns[name])
    question, premise = _question_and_premise(rows)
    ids = rows.whole("id")
    if len(ids.unique()) < len(ids):
        ids = pa.array(unique_ids(ids.to_pylist()), pa.string())
    items = ItemColumns(
        ids=ids,
        setups=rows.column("setup"),
        questions=question,
        choices=pa.ListArray.from_arrays(
            pa.array(rows.starts, pa.int32()), rows.column("choices.text")
        ),
        answers=rows.whole("answer"),
        premises=premise,
    )
    return column_questions(items, columns)


def _without_nulls(lists: pa.Array) -> pa.Array:
    """Replace nulls among lists by empty ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not lists.null_count:
        return lists
    sizes = to_numpy(pc.fill_null(lists.value_lengths(), 0))
    return pa.ListArray.from_arrays(pa.array(run_starts(sizes), pa.int32()), lists.flatten())


def _question_and_premise(rows: CodedRows) -> tuple[pa.Array, pa.Array]:
    """Return each row's question and premise, as dictionaries; for an NLI row, its two texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pairs = pa.array(rows.setups == list(SETUPS).index(NLI))
    if not pc.any(pairs).as_py():
        blank = pa.DictionaryArray.from_arrays(np.zeros(len(rows), dtype=np.int32), [""])
        return rows.column("question"), blank
    question, premise, hypothesis = (
        rows.column(name).dictionary_decode() for name in ("question", *PAIR)
    )
    shown = pc.if_else(pairs, hypothesis, question), pc.if_else(pairs, premise, "")
    return shown[0].dictionary_encode(), shown[1].dictionary_encode()


_AT_ONCE = 1024
"""Number of rows held as Python objects at a time."""

_REPEATING = ("question", "setup")
"""Columns read as dictionaries, which Arrow cannot do within lists if a file has many chunks."""


def read_parquet(paths: Sequence[Path], label_names: Sequence[str] = ()) -> pa.Table:
    """Read the columns that evaluation needs from the files of one split, in order.

    Classes have their names, see `with_class_names`.

    Raises:
        UsageError: the names of NLI labels are others than ``label_names``.
        KbprobeError: a file is not a Parquet file, is damaged, or the files' columns differ.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for path in paths:
        try:
            schema = pq.read_schema(regular_path(path))
            coded = [name for name in _REPEATING if name in schema.names]
            coded = [name for name in coded if pa.types.is_string(schema.field(name).type)]
            with pq.ParquetFile(regular_path(path), read_dictionary=coded) as file:
                table = file.read(_needed(schema.names))
            # Before files are put together: each may number its classes in another order.
            tables.append(with_class_names(table, str(path), label_names))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # of a column's name
            raise KbprobeError(f"{path} cannot be read as Parquet: {error}") from None
    try:
        return pa.concat_tables(tables)
    except pa.ArrowInvalid as error:
        named = " and ".join(str(path) for path in paths)
        raise KbprobeError(f"{named} do not have the same columns: {error}") from None


def table_questions(
    table: pa.Table, source: str, label_names: Sequence[str] = ()
) -> SplitQuestions:
    """Read a table's rows as questions; ``label_names`` as in :func:`row_questions`.

    Raises:
        KbprobeError: any row is malformed or unlabelled, as :func:`row_questions` says.
    """
    table = table.select(_needed(table.column_names))
    try:
        if not in_schema(table):
            rows = (row for batch in table.to_batches(_AT_ONCE) for row in batch.to_pylist())
            return row_questions(Records("row", enumerate(rows, 1)), source, label_names)
        own = CodedRows(table)
        if found := row_problems(own, range(1, len(own) + 1)):
            raise KbprobeError(refusal(source, "row", sorted(found), len(own)))
        return sound_questions(own)
    except UnicodeDecodeError as error:
        raise KbprobeError(f"{source} holds text that is not UTF-8: {error}") from None


def with_class_names(table: pa.Table, source: str, label_names: Sequence[str] = ()) -> pa.Table:
    """Replace numbered classes by their names, where a table's features give them.

    The features are those that datasets keeps in the metadata of a schema. Numbers alone do not
    say what they mean: sets number the labels of NLI, for example, in different orders. Names that
    are the numbers themselves say nothing more, and are left out.

    Args:
        table: the columns that are read.
        source: what they were read from, for messages.
        label_names: the names of NLI labels, as stated by the user; may be empty.

    Raises:
        UsageError: the names of NLI labels are others than those stated.
        KbprobeError: a number has no name, or the classes are within lists or structures.
    """
    for at, name in enumerate(table.column_names):
        feature = _feature(table.schema, name)
        if feature.get("_type") != "ClassLabel":
            if '"ClassLabel"' in json.dumps(feature):
                raise KbprobeError(
                    f"{source}: {name} holds numbers that stand for names (ClassLabel) within "
                    "lists, which are not read. Save the names themselves, as text."
                )
            continue
        names = [str(one) for one in feature.get("names") or ()]
        if names == [str(number) for number in range(len(names))]:
            continue
        if name in LABEL_COLUMNS and label_names:
            _check_stated(names, label_names, f"{source}: the classes of {name}")
        table = table.set_column(at, name, _named(table[name], names, f"{source}: {name}"))
    return table


def _feature(schema: pa.Schema, name: str) -> dict[str, Any]:
    """Return a column's feature as datasets describes it; empty if it does not."""
    try:
        described = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"][name]
    except (KeyError, TypeError, ValueError):
        return {}
    return described if isinstance(described, dict) else {}


def _check_stated(names: Sequence[str], stated: Sequence[str], what: str) -> None:
    own, meant = ([meaning(NLI, one) for one in order] for order in (names, stated))
    if own != meant:
        raise UsageError(
            f"{what} have names, {', '.join(names)}, which are others than --label-names "
            f"{','.join(stated)}. Leave the option out."
        )


def _named(column: pa.ChunkedArray, names: Sequence[str], what: str) -> pa.Array:
    """Return the name of each class of a column; -1 is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_integer(column.type):
        return column
    numbers = single_chunk(column)
    for odd in pc.unique(numbers).to_pylist():
        if odd is not None and not -1 <= odd < len(names):
            raise KbprobeError(f"{what} is {odd}; its classes are 0 to {len(names) - 1}")
    known = pc.if_else(pc.less(numbers, 0), pa.scalar(None, numbers.type), numbers)
    return pa.array(names, pa.string()).take(known)


def _needed(names: Sequence[str]) -> list[str]:
    """Return the columns that are needed: those of questions, or of NLI collections."""
    wanted = NEEDED if {"question", "question_stem"} & {*names} else PAIRS
    return [name for name in names if name in wanted]
