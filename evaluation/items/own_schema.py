"""Rows of kbprobe's own schema, and of any Arrow table, checked and taken as columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.items.columns import ItemColumns, plain
from evaluation.items.recast import LABEL_COLUMNS, PAIRS, meaning
from evaluation.items.rows import Records, row_questions, with_own_ids
from evaluation.items.types import ABOUT, Questions, column_questions
from kbprobe.arrays import AnyInts, Bools, Ints
from kbprobe.columns import arrow_type, codes, positions, single_chunk, to_numpy
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import regular_path
from kbprobe.format.setups import CLOZE, LABELLED_SETUPS, MASK, NLI, SCORED_SETUPS, SETUPS

if TYPE_CHECKING:
    import pyarrow as pa


_ASKED = ("id", "question", "choices", "answer", "answerKey", "setup")
_PAIR = ("premise", "hypothesis")
_FURTHER = ("fact_ids", "relation", "arguments")
NEEDED = (*_ASKED, *_PAIR, "question_stem", "notes", *ABOUT, *_FURTHER)
"""All columns that are read."""


def own_questions(table: pa.Table) -> Questions | None:
    """Return rows of kbprobe's own schema as questions, without converting their columns.

    Returns:
        None if a column has another type or any row is faulty. Rows are then read one by one,
        which gives error messages. Whatever is accepted here is also accepted there, with the
        same items (:func:`evaluation.items.rows.checked_item` defines faults).
    """
    import pyarrow as pa

    from kbprobe.format.items import arrow_schema

    own = arrow_schema()
    if not set(_ASKED) <= set(table.column_names) or not set(table.column_names) <= set(own.names):
        return None
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if kind != own.field(field.name).type:
            return None
    items, columns = _items(table), _known(table)
    if items is None or columns is None:
        return None
    if len(items.ids.unique()) < len(items):
        items = ItemColumns.of(with_own_ids(list(items)))
    return column_questions(items, columns)


def _known(table: pa.Table) -> dict[str, pa.Array] | None:
    """Return the metadata of each row; None if any value is invalid."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kbprobe.format.items import arrow_schema

    rows, own = len(table), arrow_schema()
    columns = {}
    for name in (*ABOUT, *_FURTHER):
        kind = arrow_type(ABOUT[name]) if name in ABOUT else own.field(name).type
        present = name in table.column_names
        columns[name] = single_chunk(table[name]) if present else pa.nulls(rows, kind)
    entries = columns["arguments"].flatten()
    inner = [columns[name].flatten() for name in ("fact_ids", "choice_hops", "arguments")]
    inner += entries.flatten()
    if 0 < columns["arguments"].null_count < rows or any(values.null_count for values in inner):
        return None
    for name, kind in ABOUT.items():
        if kind != "string":
            column = columns[name]
            numbers = column.flatten() if pa.types.is_list(column.type) else column
            if (pc.min(numbers).as_py() or 0) < 0:
                return None
            continue
        # Empty text is equivalent to null.
        empty = pc.equal(columns[name], "")
        columns[name] = pc.if_else(empty, pa.scalar(None, pa.string()), columns[name])
        if _some_blank(columns[name].unique()):
            return None
    return columns


def _items(table: pa.Table) -> ItemColumns | None:
    """Return the questions; None where a row has a fault."""
    import pyarrow as pa

    texts, labels = single_chunk(table["choices"]).flatten()
    rows, sizes = len(table), to_numpy(texts.value_lengths().fill_null(0))
    question, premise = _question_and_premise(table)
    asked = [question, *(table[name] for name in ("id", "setup", "answer", "answerKey"))]
    if any(len(column) != rows or column.null_count for column in (*asked, texts, labels)):
        return None
    inner = [texts.flatten(), labels.flatten()]
    if not texts.value_lengths().equals(labels.value_lengths()):
        return None
    if any(values.null_count for values in inner) or not rows or sizes.min() < 2:
        return None
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    shown, marks = map(_coded, inner)
    items = ItemColumns(
        ids=single_chunk(table["id"]),
        setups=_coded(table["setup"]),
        questions=_coded(question),
        choices=pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), shown),
        answers=single_chunk(table["answer"]).cast(pa.int32()),
        premises=_coded(premise),
    )
    words = (items.ids, items.questions.dictionary, shown.dictionary, marks.dictionary)
    if any(map(_some_blank, words)) or not _sound_choices(items, marks, table["answerKey"]):
        return None
    return items if _sound_questions(items) else None


def _sound_choices(items: ItemColumns, marks: pa.Array, keys: pa.ChunkedArray) -> bool:
    """Return whether labels are distinct, and the answer is a unique choice with the right label.

    Args:
        items: the questions.
        marks: the labels of all choices, a dictionary, shape [choices].
        keys: the label of each answer, shape [rows].
    """
    starts, answers = items.starts, to_numpy(items.answers).astype(np.int64)
    texts, labels = to_numpy(items.choices.flatten().indices), to_numpy(marks.indices)
    sizes = np.diff(starts)
    if (answers < 0).any() or (answers >= sizes).any():
        return False
    golds = starts[:-1] + answers
    if (positions(marks.dictionary, keys) != labels[golds]).any():
        return False
    for rows, grid in _by_size(starts):
        ordered = np.sort(labels[grid], axis=1)
        if (ordered[:, 1:] == ordered[:, :-1]).any():
            return False
        if ((texts[grid] == texts[golds[rows]][:, None]).sum(axis=1) > 1).any():
            return False
    return True


def _sound_questions(items: ItemColumns) -> bool:
    """Whether each setup is known, a cloze has one mask, and rows of labels have their labels."""
    import pyarrow.compute as pc

    setup_of, setups = codes(items.setups)
    masks = to_numpy(pc.count_substring(items.questions.dictionary, MASK))
    masks = masks[to_numpy(items.questions.indices)]
    for number, setup in enumerate(setups):
        own = setup_of == number
        if not own.any() or setup in SCORED_SETUPS:
            if setup == CLOZE and (masks[own] != 1).any():
                return False
            continue
        if setup not in LABELLED_SETUPS or masks[own].any():
            return False
        if not _sound_labels(items, own, SETUPS[setup].labels):
            return False
        premises = plain(items.premises.take(np.flatnonzero(own))).unique()
        if any(MASK in premise for premise in premises.to_pylist()):
            return False
        if setup == NLI and _some_blank(premises):
            return False
    return True


def _sound_labels(items: ItemColumns, own: Bools, labels: tuple[str, ...]) -> bool:
    """Return whether the choices of some rows are these labels, in any order."""
    texts = items.choices.flatten()
    expected = np.sort(positions(texts.dictionary, list(labels)))
    numbers, starts = to_numpy(texts.indices), items.starts
    if expected[0] < 0 or (np.diff(starts)[own] != len(labels)).any():
        return False
    grid = starts[:-1][own][:, None] + np.arange(len(labels))
    return bool((np.sort(numbers[grid], axis=1) == expected).all())


def _by_size(starts: Ints) -> list[tuple[Ints, AnyInts]]:
    """Group rows with equally many choices, with the choices' indices: shape [rows, choices]."""
    sizes = np.diff(starts)
    groups = []
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        groups.append((rows, starts[:-1][rows][:, None] + np.arange(size)))
    return groups


def _question_and_premise(table: pa.Table) -> tuple[pa.ChunkedArray, pa.Array]:
    """Return each row's question and premise; for an NLI row, its two texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    question, rows = table["question"], len(table)
    if not set(_PAIR) <= set(table.column_names) or table["premise"].null_count == rows:
        return question, pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), [""])
    pairs = pc.equal(table["setup"].cast("string"), NLI)
    premise, hypothesis = (pc.fill_null(table[name], "") for name in _PAIR)
    question = pc.if_else(pairs, hypothesis, question.cast("string"))
    return question, pc.if_else(pairs, premise, "")


def _coded(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column of strings as a dictionary."""
    import pyarrow as pa

    array = single_chunk(column)
    return array if pa.types.is_dictionary(array.type) else array.dictionary_encode()


def _some_blank(words: pa.Array) -> bool:
    """Return whether any of the words, except nulls, consists only of white space."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.equal(pc.utf8_trim_whitespace(words), "")).as_py())


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


def table_questions(table: pa.Table, source: str, label_names: Sequence[str] = ()) -> Questions:
    """Read a table's rows as questions; ``label_names`` as in :func:`row_questions`.

    Raises:
        KbprobeError: any row is malformed or unlabelled, as :func:`row_questions` says.
    """
    table = table.select(_needed(table.column_names))
    rows = (row for batch in table.to_batches(_AT_ONCE) for row in batch.to_pylist())
    try:
        if (own := own_questions(table)) is not None:
            return own
        return row_questions(Records("row", enumerate(rows, 1)), source, label_names)
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
