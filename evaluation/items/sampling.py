"""Sampling of a split's rows, which depends only on the seed and their ids or clusters.

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
from kbprobe.columns import codes, single_chunk
from kbprobe.errors import UsageError
from kbprobe.files import regular_path
from kbprobe.format.rows import CodedRows, problems

if TYPE_CHECKING:
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


def _draw(clusters: pa.Array, ids: Sequence[str] | None, limit: int, seed: int) -> Drawn:
    """Draw rows by their ids, whatever their clusters, or without ids whole clusters."""
    if ids is None:
        return draw_clusters(clusters, limit, seed)
    return Drawn(sorted(_drawn_first(ids, limit, seed)), False, len(clusters.unique()))


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

    By ``clusters``, whole ones are drawn, because strict cluster accuracy of part of a cluster
    would flatter the model. Drawing ends at the first cluster that does not fit: to pass it over
    would favour small ones. If the first cluster alone is too large it is cut, and the rows count
    as having no clusters. By ``rows``, the rows reach more clusters, so that accuracy is known more
    exactly; but parts of clusters have no strict accuracy.
    """
    if limit >= len(split.items):
        return split
    ids = split.items.ids.to_pylist() if limit_by == "rows" else None
    return _cut(split, _draw(single_chunk(split.about["cluster"]), ids, limit, seed))


def open_sample(found: FoundSplit, limit: int, limit_by: str, seed: int) -> ProbeSplit | None:
    """Read some rows of a built probe: those that :func:`sample` keeps by clusters or by rows.

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
    import pyarrow.parquet as pq

    if not found.entries or any(path.suffix != ".parquet" for path in found.paths):
        return None
    found.verify()
    drawn_by = ["cluster", *(["id"] if limit_by == "rows" else ())]
    try:
        table = pa.concat_tables(
            [pq.read_table(regular_path(path), columns=drawn_by) for path in found.paths]
        )
        clusters = single_chunk(table["cluster"])
        if limit >= len(table) or not pa.types.is_string(clusters.type) or _some_empty(clusters):
            return None
        ids = table["id"].to_pylist() if limit_by == "rows" else None
        drawn = _draw(clusters, ids, limit, seed)
        whole, table = (len(table), drawn.clusters), _rows_of(found, drawn.rows)
    except (pa.ArrowException, OSError, KeyError):
        return None
    rows = CodedRows(table)
    if not in_schema(table) or any(not problem.scorable for problem in problems(rows)):
        return None
    questions = sound_questions(rows)
    split = probe_split(found.name, found.source, found.split, questions, found.manifest)
    return replace(split, clustered=drawn.whole and split.clustered, drawn_from=whole)


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
