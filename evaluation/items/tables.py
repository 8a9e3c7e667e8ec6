"""Rows in Arrow tables: Parquet files, and datasets in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.items.rows import (
    ABOUT,
    Questions,
    Records,
    RowError,
    checked_item,
    column_questions,
    row_questions,
    with_own_ids,
)
from kbprobe.arrays import run_starts
from kbprobe.columns import codes, single_chunk, to_numpy
from kbprobe.errors import KbprobeError
from kbprobe.format.setups import NLI

if TYPE_CHECKING:
    import pyarrow as pa

_ASKED = ("id", "question", "choices", "answer", "answerKey", "setup")
_PAIR = ("premise", "hypothesis")
_FURTHER = ("fact_ids", "relation", "arguments")
NEEDED = (*_ASKED, *_PAIR, "question_stem", "notes", *ABOUT, *_FURTHER)
"""All columns that are ever looked at."""

_AT_ONCE = 1024
"""Rows held as Python objects at a time."""

_REPEATING = ("question", "setup")
"""Read as dictionaries. Arrow cannot do so within lists where a file has several chunks."""


def read_parquet(paths: Sequence[Path]) -> pa.Table:
    """Read the columns that evaluation needs from the files of one split, in order.

    Raises:
        KbprobeError: a file is no Parquet file, is damaged, or the files' columns differ.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for path in paths:
        try:
            schema = pq.read_schema(path)
            coded = [name for name in _REPEATING if name in schema.names]
            coded = [name for name in coded if pa.types.is_string(schema.field(name).type)]
            with pq.ParquetFile(path, read_dictionary=coded) as file:
                tables.append(file.read([name for name in schema.names if name in NEEDED]))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # of a column's name
            raise KbprobeError(f"{path} cannot be read as Parquet: {error}") from None
    try:
        return pa.concat_tables(tables)
    except pa.ArrowInvalid as error:
        named = " and ".join(str(path) for path in paths)
        raise KbprobeError(f"{named} do not have the same columns: {error}") from None


def table_questions(table: pa.Table, source: str) -> Questions:
    """Read a table's rows as questions.

    Raises:
        KbprobeError: any row is malformed or unlabelled, as :func:`row_questions` says.
    """
    table = table.select([name for name in table.column_names if name in NEEDED])
    rows = (row for batch in table.to_batches(_AT_ONCE) for row in batch.to_pylist())
    try:
        return own_questions(table) or row_questions(Records("row", enumerate(rows, 1)), source)
    except UnicodeDecodeError as error:
        raise KbprobeError(f"{source} holds text that is not UTF-8: {error}") from None


def own_questions(table: pa.Table) -> Questions | None:
    """Take the columns of kbprobe's own schema as they are.

    Returns:
        None where a column has another type, or any row has a fault: rows are then read one by
        one, which words what is wrong with them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from kbprobe.format.items import arrow_schema

    own = arrow_schema()
    if not set(_ASKED) <= set(table.column_names) or not set(table.column_names) <= set(own.names):
        return None
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if kind != own.field(field.name).type:
            return None
    texts, labels = single_chunk(table["choices"]).flatten()
    rows, sizes = len(table), texts.value_lengths()
    question, premise = _question_and_premise(table)
    asked = [question, *(table[name] for name in ("id", "setup", "answer", "answerKey"))]
    if any(len(column) != rows or column.null_count for column in (*asked, texts, labels)):
        return None
    columns = {}
    for name in (*ABOUT, *_FURTHER):
        kind = pa.type_for_alias(ABOUT[name]) if name in ABOUT else own.field(name).type
        held = name in table.column_names
        columns[name] = single_chunk(table[name]) if held else pa.nulls(rows, kind)
    entries = columns["arguments"].flatten()
    inner = [texts.flatten(), labels.flatten(), columns["fact_ids"].flatten(), entries]
    if (
        not sizes.equals(labels.value_lengths())
        or 0 < columns["arguments"].null_count < rows
        or any(values.null_count for values in (*inner, *entries.flatten()))
    ):
        return None
    names = table["id"].to_pylist()
    (questions, question_of), texts, labels = map(_coded, (question, *inner[:2]))
    if not all(word.strip() for word in (*names, *questions, *texts[0], *labels[0])):
        return None
    for name, kind in ABOUT.items():
        if kind != "string" and (pc.min(columns[name]).as_py() or 0) < 0:
            return None
        if kind == "string":
            # Empty text says as little as null.
            empty = pc.equal(columns[name], "")
            columns[name] = pc.if_else(empty, pa.scalar(None, pa.string()), columns[name])
            if not all(word is None or word.strip() for word in columns[name].unique().to_pylist()):
                return None
    shown, marks = ([words[code] for code in codes] for words, codes in (texts, labels))
    others = (table[name].to_pylist() for name in ("setup", "answer", "answerKey"))
    starts = run_starts(to_numpy(sizes)).tolist()
    try:
        items = [
            checked_item(
                name, setup, questions[asked], shown[a:b], marks[a:b], answer, key, premise=before
            )
            for name, asked, before, a, b, setup, answer, key in zip(
                names, question_of, premise, starts[:-1], starts[1:], *others, strict=True
            )
        ]
    except RowError:
        return None
    return column_questions(with_own_ids(items), columns)


def _question_and_premise(table: pa.Table) -> tuple[pa.ChunkedArray, list[str]]:
    """Return what each row asks about, and the premise before it: of an NLI row its two texts."""
    import pyarrow.compute as pc

    question, rows = table["question"], len(table)
    if not set(_PAIR) <= set(table.column_names) or table["premise"].null_count == rows:
        return question, [""] * rows
    pairs = pc.equal(table["setup"].cast("string"), NLI)
    premise, hypothesis = (pc.fill_null(table[name], "") for name in _PAIR)
    question = pc.if_else(pairs, hypothesis, question.cast("string"))
    return question, pc.if_else(pairs, premise, "").to_pylist()


def _coded(column: pa.Array) -> tuple[list[str], list[int]]:
    """Return a column's distinct texts and each entry's index into them."""
    import pyarrow as pa

    array = single_chunk(column)
    numbers, words = codes(
        array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    )
    return words, numbers.tolist()
