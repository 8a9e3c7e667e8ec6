"""The questions of a probe and what each system answered: by columns, compressed, as text.

The page reads them with ``DecompressionStream``. Columns repeat few values, or values of others: a
column of texts is a list of its different values and the index of each row's value among them.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.report.suite.collect import Answers
from kbprobe.columns import single_chunk, to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

_FILTERED = ("hops", "distractor_family")
_SHOWN = ("distractor_hops", "concept", "cluster", "pos", "template")


def pack(value: Any) -> str:
    """Return JSON as compressed text: the same bytes for the same value."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    data = gzip.compress(text.encode("utf-8"), compresslevel=6, mtime=0)
    return base64.b64encode(data).decode("ascii")


def columns_of(rows: pa.Table, total: int, answers: Mapping[int, Answers]) -> dict[str, Any]:
    """Return what the page holds of a probe's rows.

    Args:
        rows: the columns that all systems share.
        total: rows of the probe, of which these may be a sample.
        answers: of each system, by its number.
    """
    choices = single_chunk(rows["choices"])
    widths = np.diff(to_numpy(choices.offsets))
    columns = {name: _coded(rows[name]) for name in (*_FILTERED, *_SHOWN)}
    return {
        "total": total,
        "id": rows["id"].to_pylist(),
        "question": _coded(_questions(rows)),
        # Most probes have as many choices in each row: then one number says it.
        "width": int(widths[0]) if len(set(widths.tolist())) == 1 else widths.tolist(),
        "choices": _coded(choices.flatten()),
        "gold": rows["answer"].to_pylist(),
        # A column without values says nothing; nor does a cluster for each row.
        "columns": {
            name: held
            for name, held in columns.items()
            if held["values"] and not rows[name].equals(rows["id"])
        },
        "answers": {
            str(system): {"picked": held.picked.tolist(), "share": held.share.tolist()}
            for system, held in sorted(answers.items())
        },
    }


def _questions(rows: pa.Table) -> pa.Array:
    """Return the texts of the questions, with the premise before where there is one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    questions = single_chunk(rows["question"])
    if "premise" not in rows.column_names:
        return questions
    whole = pc.binary_join_element_wise(single_chunk(rows["premise"]), questions, "\n")
    return pc.coalesce(whole, questions).cast(pa.string())


def _coded(column: pa.Array | pa.ChunkedArray) -> dict[str, list[Any]]:
    """Return the different values of a column and each row's among them; -1: none."""
    coded = single_chunk(column).dictionary_encode()
    return {
        "values": coded.dictionary.to_pylist(),
        "codes": coded.indices.fill_null(-1).to_pylist(),
    }
