"""How many bytes rows take as Arrow lays them out, without laying them out."""

from __future__ import annotations

from typing import Any

import numpy as np

from kbprobe.arrays import ragged_ranges
from kbprobe.columns import to_numpy
from kbprobe.format.items import COLUMNS, Coded, Items, Ragged

OFFSET = INTEGER = 4


def arrow_bytes(items: Items) -> int:
    """Return the bytes of all rows in the types of :func:`kbprobe.format.items.arrow_schema`.

    ``datasets`` calls this number ``num_bytes``. It counts as ``pyarrow.Table.nbytes`` does, an
    offset for each string and list, but for bitmaps of nulls: there are none.
    """
    return sum(_column_bytes(items, name) for name in COLUMNS)


def _column_bytes(items: Items, name: str) -> int:
    rows = items.rows
    if name == "choices":
        texts = items.columns["choice_text"]
        assert isinstance(texts, Coded)
        labels = _offsets(rows) + _offsets(texts.codes.size) + texts.codes.size
        return _offsets(rows) + _strings(texts, texts.codes) + labels
    value: Any = items.columns.get(name, "")
    if isinstance(value, str):
        return _offsets(rows) + rows * len(value.encode())
    if isinstance(value, Coded):
        lists = _offsets(rows) if value.codes.ndim > 1 else 0
        return lists + _strings(value, value.codes)
    if isinstance(value, Ragged):
        entries = ragged_ranges(value.indptr[value.line], np.diff(value.indptr)[value.line])
        parts = (_strings(part, part.codes[entries]) for part in value.parts.values())
        return _offsets(rows) + sum(parts)
    if isinstance(value, np.ndarray):
        return INTEGER * value.size + (_offsets(rows) if value.ndim > 1 else 0)
    return int(value.nbytes)


def _strings(column: Coded, codes: Any) -> int:
    """Bytes of the strings that ``codes`` choose, and of their offsets."""
    import pyarrow.compute as pc

    lengths = to_numpy(pc.binary_length(column.values))
    return _offsets(codes.size) + int(lengths[codes].sum(dtype=np.int64))


def _offsets(entries: int) -> int:
    return OFFSET * entries
