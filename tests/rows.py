"""Rows of the item schema that tests write by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kbprobe.format.items import arrow_schema


def empty_row() -> dict[str, Any]:
    """Return a row that says nothing: empty texts and lists, numbers that are not known."""
    return {field.name: _nothing(field.type) for field in arrow_schema()}


def _nothing(kind: pa.DataType) -> Any:
    if pa.types.is_list(kind):
        return []
    return None if pa.types.is_integer(kind) else ""
