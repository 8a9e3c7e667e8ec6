"""Rows of a config as integers: distinct texts, and for each row an index into them.

Parquet stores repeating columns as dictionaries already; they are read as such and unified over
row groups and splits, so that no text is compared twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbprobe.arrays import Ints
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.format.items import Coded, arrow_schema
from kbprobe.format.setups import SPLITS
from release.checks.findings import SHOWN

if TYPE_CHECKING:
    import pyarrow as pa

    from kbprobe.format.manifest import DataFile

TEXTS = (
    "question", "premise", "hypothesis", "answerKey", "setup", "cluster", "concept",
    "schema_version",
)  # fmt: skip
READ = ("id", *TEXTS, "choices", "answer", "choice_families", "fact_ids")


class ConfigRows:
    """All rows of a config, splits one after another.

    Attributes:
        split: index into ``SPLITS``. Shape [rows].
        ids: their ids. Shape [rows].
        texts: the columns of :data:`TEXTS`; codes are -1 for null.
        answer: index of the gold; -1 for null. Shape [rows].
        width, label_width, family_width: number of choices, labels and families. Shape [rows].
        choice, label, family, fact: the entries of the rows' lists, one after another.
        nulls: columns that have nulls.
    """

    def __init__(self, table: pa.Table, split: Ints) -> None:
        import pyarrow.compute as pc

        self.split, self.ids = split, table["id"]
        self.texts = {name: coded(table[name]) for name in TEXTS}
        self.answer = to_numpy(pc.fill_null(table["answer"], -1)).astype(np.int64)
        lists = {part: pc.struct_field(table["choices"], part) for part in ("text", "label")}
        lists |= {name: table[name] for name in ("choice_families", "fact_ids")}
        entries = {name: pc.list_flatten(column) for name, column in lists.items()}
        self.choice, self.label, self.family, self.fact = map(coded, entries.values())
        self.width, self.label_width, self.family_width, _ = (
            to_numpy(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)
            for column in lists.values()
        )
        checked = [(name, table[name]) for name in READ]
        checked += [(part, one[part]) for one in (lists, entries) for part in ("text", "label")]
        self.nulls = sorted({name for name, column in checked if column.null_count})

    @cached_property
    def first(self) -> Ints:
        """Where the choices of each row begin. Shape [rows]."""
        return np.cumsum(self.width) - self.width

    @cached_property
    def row_of_choice(self) -> Ints:
        """The row of each choice."""
        return np.repeat(np.arange(self.width.size), self.width)

    @cached_property
    def labelled(self) -> Any:
        """Whether the answer is one of the choices. Shape [rows]."""
        return (self.answer >= 0) & (self.answer < self.width)

    @cached_property
    def gold(self) -> Ints:
        """The code of the gold's text; -1 where there is none. Shape [rows]."""
        at = np.where(self.labelled, self.first + self.answer, -1)
        return np.append(self.choice.codes, -1)[at]

    def ids_at(self, rows: Any) -> list[str]:
        """Return the ids of the first few of some rows."""
        return [str(self.ids[int(row)]) for row in np.asarray(rows)[:SHOWN]]


def read_config(folder: Path, entries: Sequence[DataFile], pool: Executor) -> ConfigRows:
    """Read all files of a config.

    Raises:
        OSError, pyarrow.ArrowException: a file cannot be read.
    """
    import pyarrow as pa

    order = sorted(entries, key=lambda entry: SPLITS.index(entry.split))
    tables = list(pool.map(_table, [folder / entry.path for entry in order]))
    splits = [SPLITS.index(entry.split) for entry in order]
    return ConfigRows(
        pa.concat_tables(tables), np.repeat(splits, [table.num_rows for table in tables])
    )


def _table(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = list(READ)
    if path.suffix != ".parquet":
        import pyarrow.json

        options = pa.json.ParseOptions(explicit_schema=arrow_schema())
        return pa.json.read_json(path, parse_options=options).select(wanted)
    dictionaries = [*TEXTS, "choices.text.list.element", "choices.label.list.element"]
    dictionaries += ["choice_families.list.element", "fact_ids.list.element"]
    with pq.ParquetFile(path, read_dictionary=dictionaries) as file:
        # Several row groups of nested dictionaries cannot be read at once.
        groups = [file.read_row_group(at, columns=wanted) for at in range(file.num_row_groups)]
        return pa.concat_tables(groups or [file.read(columns=wanted)])


def coded(column: pa.ChunkedArray) -> Coded:
    """Return a column of texts as distinct texts and indices into them (-1: null)."""
    array = single_chunk(
        column if hasattr(column.type, "index_type") else column.dictionary_encode()
    )
    return Coded(array.dictionary, to_numpy(array.indices.fill_null(-1)).astype(np.int64))


def code_of(column: Coded, text: str) -> int:
    """Return the code of a text; -2 where no entry has it."""
    found = column.values.index(text).as_py()
    return found if found >= 0 else -2
