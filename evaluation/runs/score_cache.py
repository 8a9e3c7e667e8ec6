"""Scores on disk: what a run has computed so far, and what any run ever computed.

An entry is found by a hash of everything that its numbers depend on
(:attr:`evaluation.runs.run.Run.content`): weights, tokenizer, dtype, scorer and version, rows,
options. While it is being filled it holds parts (``part-00003.parquet``:
the scored rows of one part of the questions); once whole, ``scores.parquet`` alone.

Every file carries a digest of the numbers in it and of its entry's key, and checksums of its
pages: whatever is damaged, or is of another entry, is scored again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.content import content_hash
from evaluation.results.analyses.generated import Answer
from evaluation.results.metrics import Scores
from kbprobe.arrays import Floats, Ints, ragged_ranges, run_starts
from kbprobe.columns import mask, single_chunk, sparse_texts, to_numpy
from kbprobe.files import plain_path, regular_path, replacing_file, write_file
from kbprobe.files.cache import cache_dir, unusable

if TYPE_CHECKING:
    import pyarrow as pa

SCORES = "scores"
"""The folder of all entries, in kbprobe's cache."""

_SCORES = "scores.parquet"
_COLUMNS = ["scores", "tokens", "set_aside"]
_ANSWERS = "answers"
"""A further column, where the model wrote answers: those to an item, as JSON."""
_SAID, _DIGEST = b"about", b"sha256"
_ABOUT = ("notes", "score_name", "sequences", "sequence_tokens", "parameters", "fitting")


class ScoreCache:
    """One entry: the scores of one probe split under one model and one set of options."""

    def __init__(self, content: Mapping[str, Any], root: Path | None = None) -> None:
        """Name the entry by what the key is made of; nothing is written yet."""
        self.key = content_hash(content)
        self._content = content
        self.folder = (root or cache_dir() / SCORES) / self.key

    def read(self, starts: Ints) -> Scores | None:
        """Return the whole entry, or None where it is missing, unfinished or damaged.

        ``starts`` are those of :func:`~evaluation.items.types.choice_starts`, here and below.
        """
        table = self._read(_SCORES, _COLUMNS)
        scores = None if table is None else _scores_of(table, starts)
        if scores is not None:
            with suppress(OSError):  # an interruption may have left them
                self._remove_parts()
        return scores

    def write(self, scores: Scores, starts: Ints) -> None:
        """Store the whole entry and drop its parts.

        Raises:
            CacheError: the cache cannot be written.
        """
        self._write(_table_of(scores, starts), _SCORES)
        self._remove_parts()

    def _remove_parts(self) -> None:
        for part in self.folder.glob("part-*.parquet"):
            part.unlink(missing_ok=True)

    def read_part(self, part: int, rows: Ints, starts: Ints) -> Scores | None:
        """Return one part, which must hold these items; None where it does not.

        Items are numbered within it.
        """
        table = self._read(_part_name(part), ["row", *_COLUMNS])
        if table is None or not np.array_equal(to_numpy(table["row"]), rows):
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

    def _read(self, name: str, columns: list[str]) -> pa.Table | None:
        """Return what was written to a file; None where there is none, or it is damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            # A plain file, not a mapped one: it may be removed while its table is in use.
            path = self.folder / name
            with pq.ParquetFile(
                regular_path(path), memory_map=False, page_checksum_verification=True
            ) as file:
                table = file.read()
            said = table.schema.metadata or {}
            own = [name for name in table.column_names if name != _ANSWERS]
            sound = own == columns and said[_DIGEST] == self._digest(table)
        except (OSError, ValueError, TypeError, KeyError, pa.ArrowException):
            return None  # Whatever cannot be read is scored again.
        return table if sound else None

    def _digest(self, table: pa.Table) -> bytes:
        """Hash what a table holds, and the entry that it belongs to."""
        import pyarrow as pa

        digest = hashlib.sha256(self.key.encode())
        parts = [table.schema.metadata[_SAID]]
        for name in table.column_names:
            array = single_chunk(table[name])
            if pa.types.is_list(array.type):
                parts += _bytes(array.offsets, array.values)
            elif pa.types.is_string(array.type):
                parts.append(json.dumps(array.to_pylist()).encode())
            else:
                parts += _bytes(array)
        for part in parts:
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest.hexdigest().encode()

    def _write(self, table: pa.Table, name: str) -> None:
        import pyarrow.parquet as pq

        described = self.folder / "key.json"
        try:
            if not described.is_file():
                write_file(described, json.dumps(self._content, indent=2, sort_keys=True))
            sealed = table.replace_schema_metadata(
                {**table.schema.metadata, _DIGEST: self._digest(table)}
            )
            # Flushing would cost more time than scoring does on a GPU: a part that a power cut
            # damages is scored again.
            with replacing_file(self.folder / name, durable=False) as aside:
                pq.write_table(
                    sealed, plain_path(aside), compression="zstd", write_page_checksum=True
                )
        except OSError as error:
            raise unusable(self.folder, error) from error


def choices_of(rows: Ints, starts: Ints) -> Ints:
    """Return the numbers of all choices of some items, item after item."""
    return ragged_ranges(starts[rows], np.diff(starts)[rows])


def starts_of(rows: Ints, starts: Ints) -> Ints:
    """Number the choices of some items alone: shape [rows + 1]."""
    return run_starts(np.diff(starts)[rows])


def _table_of(scores: Scores, starts: Ints) -> pa.Table:
    import pyarrow as pa

    columns = {
        "scores": _lists(starts, scores.scores),
        "tokens": _lists(starts, scores.tokens),
        "set_aside": sparse_texts(scores.set_aside, len(starts) - 1),
    }
    if scores.answers:
        columns[_ANSWERS] = pa.array([json.dumps(own) for own in scores.answers], pa.string())
    about = {name: getattr(scores, name) for name in _ABOUT}
    return pa.table(columns).replace_schema_metadata({_SAID: json.dumps(about)})


def _scores_of(table: pa.Table, starts: Ints) -> Scores | None:
    """Return the scores that a table holds; None where they are of other items."""
    about = json.loads(table.schema.metadata[_SAID])
    scores, tokens = single_chunk(table["scores"]), single_chunk(table["tokens"])
    if not np.array_equal(to_numpy(scores.offsets), starts):
        return None
    reasons = single_chunk(table["set_aside"])
    aside = np.flatnonzero(mask(reasons.is_valid())).tolist()
    written = table[_ANSWERS].to_pylist() if _ANSWERS in table.column_names else ()
    return Scores(
        scores=to_numpy(scores.values),
        tokens=to_numpy(tokens.values),
        set_aside={row: reasons[row].as_py() for row in aside},
        answers=[[Answer(*one) for one in json.loads(own)] for own in written],
        **about,
    )


def _lists(starts: Ints, values: Floats | Ints) -> pa.Array:
    import pyarrow as pa

    return pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), pa.array(values))


def _part_name(part: int) -> str:
    return f"part-{part:05d}.parquet"


def _bytes(*arrays: pa.Array) -> list[bytes]:
    """The type and the content of each array of numbers."""
    return [
        part for array in arrays for part in (str(array.type).encode(), to_numpy(array).tobytes())
    ]
