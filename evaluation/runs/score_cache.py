"""Scores on disk: what a run has computed so far, and what any run ever computed.

An entry is found by a hash of everything that its numbers depend on
(:attr:`evaluation.runs.run.Run.content`): weights, tokenizer, dtype, scorer and version, rows,
options. While it is being filled it holds parts (``part-00003.parquet``:
the scored rows of one part of the questions); once whole, ``scores.parquet`` alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.content import content_hash
from evaluation.results.scores import Scores
from kb_cache.store import cache_dir, unusable
from kbprobe.arrays import Floats, Ints, ragged_ranges, run_starts
from kbprobe.columns import to_numpy
from kbprobe.files import write_file

if TYPE_CHECKING:
    import pyarrow as pa

SCORES = "scores"
"""The folder of all entries, in kbprobe's cache."""

_SCORES = "scores.parquet"
_COLUMNS = ["scores", "tokens", "set_aside"]
_ABOUT = ("notes", "score_name", "sequences", "sequence_tokens", "parameters", "fitting")


class ScoreCache:
    """One entry: the scores of one probe split under one model and one set of options."""

    def __init__(self, content: Mapping[str, Any], root: Path | None = None) -> None:
        """Name the entry; nothing is written yet.

        Args:
            content: what the key is made of, kept beside the scores for people to read.
            root: the folder of all entries; None: that in kbprobe's cache.
        """
        self.key = content_hash(content)
        self._content = content
        self.folder = (root or cache_dir() / SCORES) / self.key

    def read(self, starts: Ints) -> Scores | None:
        """Return the whole entry, or None where it is missing, unfinished or damaged.

        ``starts`` are those of :func:`~evaluation.items.types.choice_starts`, here and below.
        """
        table = _read(self.folder / _SCORES, _COLUMNS)
        return None if table is None else _scores_of(table, starts)

    def write(self, scores: Scores, starts: Ints) -> None:
        """Store the whole entry and drop its parts.

        Raises:
            CacheError: the cache cannot be written.
        """
        self._write(_table_of(scores, starts), _SCORES)
        for part in self.folder.glob("part-*.parquet"):
            part.unlink(missing_ok=True)

    def read_part(self, part: int, rows: Ints, starts: Ints) -> Scores | None:
        """Return one part, which must hold these items; None where it does not.

        Items are numbered within it.
        """
        table = _read(self.folder / _part_name(part), ["row", *_COLUMNS])
        if table is None or not np.array_equal(to_numpy(table["row"].combine_chunks()), rows):
            return None
        return _scores_of(table, starts_of(rows, starts))

    def write_part(self, part: int, rows: Ints, starts: Ints, scores: Scores) -> None:
        """Store one part: these items, as :meth:`read_part` gives them.

        Raises:
            CacheError: the cache cannot be written.
        """
        import pyarrow as pa

        table = _table_of(scores, starts_of(rows, starts))
        self._write(table.add_column(0, "row", pa.array(rows)), _part_name(part))

    def _write(self, table: pa.Table, name: str) -> None:
        import pyarrow.parquet as pq

        described, aside = self.folder / "key.json", self.folder / f".{name}.{os.getpid()}"
        try:
            if not described.is_file():
                write_file(described, json.dumps(self._content, indent=2, sort_keys=True))
            # Not flushed to disk, which would cost more time than scoring does on a GPU: a part
            # that a power cut damages is scored again.
            pq.write_table(table, aside, compression="zstd")
            aside.replace(self.folder / name)
        except OSError as error:
            with suppress(OSError):
                aside.unlink()
            raise unusable(self.folder, error) from error


def choices_of(rows: Ints, starts: Ints) -> Ints:
    """Return the numbers of all choices of some items, item after item."""
    return ragged_ranges(starts[rows], np.diff(starts)[rows])


def starts_of(rows: Ints, starts: Ints) -> Ints:
    """Number the choices of some items alone: shape [rows + 1]."""
    return run_starts(np.diff(starts)[rows])


def _table_of(scores: Scores, starts: Ints) -> pa.Table:
    import pyarrow as pa

    reasons = [scores.set_aside.get(row) for row in range(len(starts) - 1)]
    columns = {
        "scores": _lists(starts, scores.scores),
        "tokens": _lists(starts, scores.tokens),
        "set_aside": pa.array(reasons, pa.string()),
    }
    about = {name: getattr(scores, name) for name in _ABOUT}
    return pa.table(columns).replace_schema_metadata({"about": json.dumps(about)})


def _scores_of(table: pa.Table, starts: Ints) -> Scores | None:
    """Return the scores that a table holds; None where they are of other items."""
    if b"about" not in (table.schema.metadata or {}):
        return None
    about = json.loads(table.schema.metadata[b"about"])
    scores, tokens = table["scores"].combine_chunks(), table["tokens"].combine_chunks()
    if not np.array_equal(to_numpy(scores.offsets), starts):
        return None
    reasons = table["set_aside"].to_pylist()
    return Scores(
        scores=to_numpy(scores.values),
        tokens=to_numpy(tokens.values),
        set_aside={row: reason for row, reason in enumerate(reasons) if reason is not None},
        **about,
    )


def _lists(starts: Ints, values: Floats | Ints) -> pa.Array:
    import pyarrow as pa

    return pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), pa.array(values))


def _part_name(part: int) -> str:
    return f"part-{part:05d}.parquet"


def _read(path: Path, columns: list[str]) -> pa.Table | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # A plain file, not a mapped one: it may be removed while its table is in use.
        table = pq.read_table(path, memory_map=False)
    except (OSError, pa.ArrowException):
        return None  # Whatever cannot be read is scored again.
    return table if table.column_names == columns else None
