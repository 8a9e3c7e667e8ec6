"""Sampling of a split's rows, which depends only on the seed and their choices, clusters or ids.

Only the drawn rows of a built probe are read: others are neither converted to items nor checked.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evaluation.items.own_schema import NEEDED, in_schema, sound_questions
from evaluation.items.sources import FoundSplit
from evaluation.items.types import Item, ProbeSplit, ids_of, probe_split
from kbprobe.arrays import Ints, run_starts
from kbprobe.columns import codes, single_chunk, to_numpy
from kbprobe.errors import UsageError
from kbprobe.files import regular_path
from kbprobe.format.rows import CodedRows, problems

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

_AT_ONCE = 1 << 16
"""Rows of a file that are in memory at a time."""


class Drawn(NamedTuple):
    """Rows that were drawn.

    Attributes:
        rows: their positions, ascending.
        whole: whether they form whole clusters.
        clusters: the number of clusters of all rows.
    """

    rows: list[int]
    whole: bool
    clusters: int


class _DrawnBy(NamedTuple):
    """Columns that a draw depends on: by rows ``ids``, by groups ``choices`` and ``answers``.

    The choices are lists of a dictionary of texts.
    """

    clusters: pa.Array
    ids: pa.Array | None = None
    choices: pa.Array | None = None
    answers: pa.Array | None = None

    def draw(self, limit: int, seed: int) -> Drawn:
        """Draw whole choice groups, or whole clusters where rows are in no groups, or rows."""
        if self.ids is not None:
            rows = sorted(_drawn_first(self.ids.to_pylist(), limit, seed))
            return Drawn(rows, False, len(self.clusters.unique()))
        groups = None
        if self.choices is not None:
            groups = _choice_groups(self.choices, to_numpy(self.answers))
        if groups is None:
            return draw_clusters(self.clusters, limit, seed)
        rows = draw_clusters(groups, limit, seed).rows
        return Drawn(rows, False, len(self.clusters.unique()))


def _choice_groups(choices: pa.Array, answers: Ints) -> pa.Array | None:
    """Return the name of each row's choice group, which its choices decide; None without groups."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kbprobe.audit.rows import in_choice_groups

    width = to_numpy(pc.fill_null(pc.list_value_length(choices), 0)).astype(np.int64)
    if (width < 2).any() or (answers < 0).any() or (answers >= width).any():
        return None
    flat = single_chunk(choices.flatten())
    text, texts = codes(flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode())
    hashes = np.array([_hash(one) for one in texts], dtype=np.uint64)[text]
    starts = run_starts(width)[:-1]
    shown = np.add.reduceat(hashes, starts)  # whatever the order of the choices
    if not in_choice_groups(shown, text[starts + answers].astype(np.int64), width):
        return None
    return pa.array([f"{name:016x}" for name in shown.tolist()], pa.string())


def _hash(text: str) -> int:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")


def draw_items(items: Sequence[Item], count: int, seed: int) -> list[int]:
    """Draw training rows by a hash of seed and id, whatever their order.

    The first rows of a draw are those of a smaller one.

    Raises:
        UsageError: there are fewer than ``count``.
    """
    check_count(items, count)
    return _drawn_first(ids_of(items), count, seed)


def _drawn_first(ids: Sequence[str], count: int, seed: int) -> list[int]:
    """Return the positions of the ``count`` ids with the least hashes, in the order of these."""

    def draw(row: int) -> bytes:
        return hashlib.sha256(f"{seed}\0{ids[row]}".encode("utf-8", "surrogatepass")).digest()

    return heapq.nsmallest(count, range(len(ids)), key=draw)


def check_count(
    items: Sequence[Item], count: int, option: str = "--train", source: str | None = None
) -> None:
    """Refuse to draw more rows than there are in the train split of a probe (``source``).

    Raises:
        UsageError: there are fewer than ``count``.
    """
    if count > len(items):
        of = "" if source is None else f" of {source}"
        raise UsageError(
            f"{option} {count:,} asks for more rows than the train split{of} has ({len(items):,}). "
            f"Use {option} {len(items)} or less, or build the probe with a larger --train-rows."
        )


def draw_clusters(clusters: pa.Array, limit: int, seed: int) -> Drawn:
    """Draw at most ``limit`` rows: whole clusters, in an order that only the seed decides.

    Drawing ends at the first cluster that does not fit. If the first cluster alone is too large
    it is cut.
    """
    of_row, names = codes(clusters.dictionary_encode())
    sizes = np.bincount(of_row, minlength=len(names))

    def draw(cluster: int) -> bytes:
        return hashlib.sha256(f"{seed}\0{names[cluster]}".encode()).digest()

    # Each cluster has at least one row, so no more clusters than rows can be kept.
    order = heapq.nsmallest(limit + 1, range(len(names)), key=draw)
    fits = int(np.searchsorted(np.cumsum(sizes[order]), limit, side="right"))
    kept = np.zeros(len(names), dtype=np.bool_)
    kept[order[: max(fits, 1)]] = True
    rows = np.flatnonzero(kept[of_row])[:limit]
    return Drawn(rows.tolist(), fits > 0, len(names))


def sample(split: ProbeSplit, limit: int, limit_by: str, seed: int) -> ProbeSplit:
    """Keep at most ``limit`` rows, drawn by a hash of the seed, in the order of the source.

    By ``groups``, whole choice groups are drawn, because the choices of part of a group tell which
    of them is more often right. They divide clusters, and so the rows count as having none; where
    rows are in no groups, clusters are drawn. By ``clusters``, whole ones are drawn, because strict
    cluster accuracy of part of a cluster would flatter the model. Drawing ends at the first cluster
    that does not fit: to pass it over would favour small ones. If the first cluster alone is too
    large it is cut, and the rows count as having no clusters. By ``rows``, the rows reach more
    clusters, so that accuracy is known more exactly; but parts of clusters have no strict accuracy.
    """
    if limit >= len(split.items):
        return split
    items, drawn_by = split.items, _DrawnBy(single_chunk(split.about["cluster"]))
    if limit_by == "rows":
        drawn_by = drawn_by._replace(ids=items.ids)
    elif limit_by == "groups":
        drawn_by = drawn_by._replace(choices=items.choices, answers=items.answers)
    return _cut(split, drawn_by.draw(limit, seed))


def open_sample(found: FoundSplit, limit: int, limit_by: str, seed: int) -> ProbeSplit | None:
    """Read some rows of a built probe: those that :func:`sample` keeps.

    Only what the draw depends on is read of the whole split; rows that are not drawn are not
    checked.

    Returns:
        None where the split must be read whole: it was not built by kbprobe, holds no more rows
        than the limit, names no clusters, or a row that was drawn has a fault (which is then put
        into words).

    Raises:
        KbprobeError: the file is damaged.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not found.entries or any(path.suffix != ".parquet" for path in found.paths):
        return None
    found.verify()
    further = {"rows": ["id"], "groups": ["choices", "answer"]}.get(limit_by, [])
    try:
        table = pa.concat_tables([_columns(path, ["cluster", *further]) for path in found.paths])
        clusters = single_chunk(table["cluster"])
        if limit >= len(table) or not pa.types.is_string(clusters.type) or _some_empty(clusters):
            return None
        drawn_by = _DrawnBy(clusters)
        if limit_by == "rows":
            drawn_by = drawn_by._replace(ids=single_chunk(table["id"]))
        elif limit_by == "groups":
            texts = single_chunk(pc.struct_field(table["choices"], "text"))
            answers = single_chunk(table["answer"].fill_null(-1))
            drawn_by = drawn_by._replace(choices=texts, answers=answers)
        drawn = drawn_by.draw(limit, seed)
        whole, table = (len(table), drawn.clusters), _rows_of(found, drawn.rows)
    except (pa.ArrowException, OSError, KeyError):
        return None
    rows = CodedRows(table)
    if not in_schema(table) or any(not problem.scorable for problem in problems(rows)):
        return None
    questions = sound_questions(rows)
    split = probe_split(found.name, found.source, found.split, questions, found.manifest)
    return replace(split, clustered=drawn.whole and split.clustered, drawn_from=whole)


def _columns(path: Path, names: Sequence[str]) -> pa.Table:
    """Read some columns of a file, of choices only the texts, each distinct one once."""
    import pyarrow.parquet as pq

    texts = "choices.text"
    with pq.ParquetFile(regular_path(path)) as file:
        leaves = [file.schema.column(at).path for at in range(len(file.schema))]
    coded = [leaf for leaf in leaves if leaf.startswith(f"{texts}.")]
    with pq.ParquetFile(regular_path(path), read_dictionary=coded) as file:
        return file.read([texts if name == "choices" else name for name in names])


def _some_empty(clusters: pa.Array) -> bool:
    import pyarrow.compute as pc

    return bool(clusters.null_count or pc.any(pc.equal(clusters, "")).as_py())


def _rows_of(found: FoundSplit, rows: Sequence[int]) -> pa.Table:
    """Read some rows of a split's files, a part of the files at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted, first, parts = np.asarray(rows), 0, []
    for path in found.paths:
        schema = pq.read_schema(regular_path(path))
        columns = [name for name in schema.names if name in NEEDED]
        texts = [name for name in columns if pa.types.is_string(schema.field(name).type)]
        # Most rows are skipped, so their texts need not be copied.
        with pq.ParquetFile(regular_path(path), read_dictionary=texts) as file:
            for batch in file.iter_batches(_AT_ONCE, columns=columns):
                low, high = np.searchsorted(wanted, (first, first + len(batch)))
                if high > low:
                    taken = batch.take(pa.array(wanted[low:high] - first))
                    own = pa.schema([schema.field(name) for name in columns])
                    parts.append(pa.Table.from_batches([taken]).cast(own))
                first += len(batch)
    return pa.concat_tables(parts)


def _cut(split: ProbeSplit, drawn: Drawn) -> ProbeSplit:
    whole = len(split.items), drawn.clusters
    clustered = split.clustered and drawn.whole
    return replace(split.take(drawn.rows), clustered=clustered, drawn_from=whole)
