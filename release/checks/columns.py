"""Rows of a config as integers: distinct texts, and for each row an index into them.

Parquet stores repeating columns as dictionaries already; they are read as such and unified over
row groups and splits, so that no text is compared twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbprobe.arrays import Ints
from kbprobe.columns import to_numpy
from kbprobe.format.setups import SPLITS
from release.checks.findings import SHOWN

if TYPE_CHECKING:
    import pyarrow as pa

    from release.checks.manifest import DataFile

TEXTS = (
    "question", "premise", "hypothesis", "answerKey", "setup", "cluster", "concept",
    "schema_version",
)  # fmt: skip
READ = ("id", *TEXTS, "choices", "answer", "choice_families", "fact_ids")


@dataclass(frozen=True)
class Texts:
    """A column of texts: the distinct ones, and for each entry an index into them (-1: null)."""

    values: pa.Array
    codes: Ints

    def of(self, text: str) -> int:
        """Return the code of a text; -2 where no entry has it."""
        found = self.values.index(text).as_py()
        return found if found >= 0 else -2


@dataclass(frozen=True)
class ConfigRows:
    """All rows of a config, splits one after another.

    Attributes:
        split: (rows,) index into ``SPLITS``.
        ids: (rows,) their ids.
        texts: the columns of :data:`TEXTS`.
        answer: (rows,) index of the gold; -1 for null.
        width: (rows,) number of choices.
        choice, label: the choices' texts and labels, one entry a choice.
        families: number of families of each row, and the families, one entry a choice.
        facts: ids of the facts that rows name, one entry a fact.
        nulls: columns that have nulls.
    """

    split: Ints
    ids: pa.ChunkedArray
    texts: dict[str, Texts]
    answer: Ints
    width: Ints
    choice: Texts
    label: Texts
    label_width: Ints
    families: tuple[Ints, Texts]
    facts: Texts
    nulls: list[str]

    @cached_property
    def first(self) -> Ints:
        """(rows,) where the choices of each row begin."""
        return np.concatenate([[0], np.cumsum(self.width)[:-1]]).astype(np.int64)

    @cached_property
    def row_of_choice(self) -> Ints:
        """The row of each choice."""
        return np.repeat(np.arange(self.width.size), self.width)

    @cached_property
    def labelled(self) -> Any:
        """(rows,) whether the answer is one of the choices."""
        return (self.answer >= 0) & (self.answer < self.width)

    @cached_property
    def gold(self) -> Ints:
        """(rows,) the code of the gold's text; -1 where there is none."""
        if not self.choice.codes.size:
            return np.full(self.answer.size, -1)
        at = np.where(self.labelled, self.first + self.answer, 0)
        return np.where(self.labelled, self.choice.codes[at], -1)

    def ids_at(self, rows: Any) -> list[str]:
        """Return the ids of the first few of some rows."""
        return [str(self.ids[int(row)]) for row in np.asarray(rows)[:SHOWN]]


def read_config(folder: Path, entries: Sequence[DataFile], pool: Executor) -> ConfigRows:
    """Read all files of a config.

    Raises:
        OSError, pyarrow.ArrowException: a file cannot be read.
    """
    order = sorted(entries, key=lambda entry: SPLITS.index(entry.split))
    jobs = [pool.submit(_tables, folder / entry.path) for entry in order]
    found = [
        (SPLITS.index(entry.split), job.result()) for entry, job in zip(order, jobs, strict=True)
    ]
    tables = [table for _, several in found for table in several]
    split = [np.full(one.num_rows, code) for code, several in found for one in several]

    def columns(name: str) -> list[Any]:
        return [chunk for table in tables for chunk in table[name].chunks]

    choices = columns("choices")
    texts, labels = ([one.field(part) for one in choices] for part in ("text", "label"))
    families = columns("choice_families")
    nulls = [name for name in READ if any(one.null_count for one in columns(name))]
    nulls += [part for part, lists in (("text", texts), ("label", labels)) if _inner_nulls(lists)]
    answers = [one.fill_null(-1) for one in columns("answer")]
    import pyarrow as pa

    return ConfigRows(
        np.concatenate(split) if split else np.empty(0, np.int64),
        pa.chunked_array(columns("id"), type=pa.string()),
        {name: _texts(columns(name)) for name in TEXTS},
        _integers(answers),
        _lengths(texts),
        _texts([one.flatten() for one in texts]),
        _texts([one.flatten() for one in labels]),
        _lengths(labels),
        (_lengths(families), _texts([one.flatten() for one in families])),
        _texts([one.flatten() for one in columns("fact_ids")]),
        sorted(set(nulls)),
    )


def _tables(path: Path) -> list[pa.Table]:
    """Read a file's row groups: whole files of nested dictionaries cannot be read at once."""
    import pyarrow.parquet as pq

    from kbprobe.format.items import arrow_schema

    wanted = list(READ)
    if path.suffix != ".parquet":
        import pyarrow as pa
        import pyarrow.json

        options = pa.json.ParseOptions(explicit_schema=arrow_schema())
        return [pa.json.read_json(path, parse_options=options).select(wanted).combine_chunks()]
    coded = [*TEXTS, "choices.text.list.element", "choices.label.list.element"]
    coded += ["choice_families.list.element", "fact_ids.list.element"]
    with pq.ParquetFile(path, read_dictionary=coded) as file:
        return [file.read_row_group(at, columns=wanted) for at in range(file.num_row_groups)]


def _texts(chunks: Sequence[Any]) -> Texts:
    """Unify the dictionaries of a column's chunks."""
    import pyarrow as pa

    kind = pa.dictionary(pa.int32(), pa.string())
    coded = [
        chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        for chunk in chunks
    ]
    if not coded:
        return Texts(pa.array([], pa.string()), np.empty(0, np.int64))
    unified = pa.chunked_array(coded, type=kind).unify_dictionaries()
    codes = [to_numpy(chunk.indices.fill_null(-1)).astype(np.int64) for chunk in unified.chunks]
    return Texts(unified.chunk(0).dictionary, np.concatenate(codes))


def _integers(chunks: Sequence[Any]) -> Ints:
    found = [to_numpy(chunk).astype(np.int64) for chunk in chunks]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _lengths(lists: Sequence[Any]) -> Ints:
    return _integers([one.value_lengths().fill_null(0) for one in lists])


def _inner_nulls(lists: Sequence[Any]) -> bool:
    return any(one.null_count or one.flatten().null_count for one in lists)
