"""Compiling batches of ConceptNet edges into the tables of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbprobe.arrays import Ints
from kbprobe.columns import codes, single_chunk, to_numpy
from kbprobe.errors import SourceError

_PARTS = r"^/c/(?P<language>[^/]+)/(?P<text>[^/]+)(?:/(?P<pos>[^/]*)(?:/(?P<sense>.*))?)?$"


def compile_edges(batches: Iterable[pa.RecordBatch]) -> tuple[dict[str, pa.Table], int]:
    """Compile edges into the tables of ``ConceptNet``; also return how many edges were merged.

    Concepts are sorted by their URIs, edges by relation, negation, start and end, whatever their
    order in the source. Edges that agree in all four are merged: their weights are added, as
    ConceptNet adds those of an edge's sources, and the first gives dataset and surface text.

    Args:
        batches: of `kb_cache.conceptnet.types.edges_schema`; all are held in memory.

    Raises:
        SourceError: there are no edges.
    """
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        raise SourceError(
            "the source has no edge of the wanted languages and relations "
            "(see kb-cache fetch conceptnet --help)"
        )
    edges = pa.Table.from_batches(held).combine_chunks()
    del held
    concepts, ids = _concepts(edges["start"], edges["end"])
    start, end = ids[: edges.num_rows], ids[edges.num_rows :]
    relations, relation = _relations(edges["relation"])
    order, first = _order(relation, start, end)
    kept = order[first]
    rows = pa.array(kept)
    assertions = pa.table(
        {
            "start": pa.array(start[kept], pa.int32()),
            "end": pa.array(end[kept], pa.int32()),
            "weight": np.add.reduceat(to_numpy(edges["weight"])[order], first),
            "dataset": single_chunk(edges["dataset"]).take(rows).dictionary_encode(),
            "surface": single_chunk(edges["surface"]).take(rows),
        }
    )
    counts = np.bincount(relation[kept], minlength=relations.num_rows)
    relations = relations.append_column("edges", pa.array(counts, pa.int64()))
    tables = {"concepts": concepts, "assertions": assertions, "relations": relations}
    return tables, int(order.size - kept.size)


def _concepts(start: pa.ChunkedArray, end: pa.ChunkedArray) -> tuple[pa.Table, Ints]:
    """The distinct concepts of all ends, and the id of each: those of starts, then of ends."""
    both = pa.chunked_array([*start.chunks, *end.chunks], pa.string())
    found = single_chunk(both.dictionary_encode())
    order = to_numpy(pc.sort_indices(found.dictionary)).astype(np.int64)
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    uris = found.dictionary.take(pa.array(order))
    parts = pc.extract_regex(uris, _PARTS)
    if parts.null_count:
        raise SourceError(f"{uris.filter(parts.is_null())[0]} is not the URI of a concept")
    columns = {"text": pc.replace_substring(pc.struct_field(parts, "text"), "_", " ")}
    for name in ("language", "pos", "sense"):
        columns[name] = pc.struct_field(parts, name).dictionary_encode()
    return pa.table(columns), rank[to_numpy(found.indices)]


def _relations(column: pa.ChunkedArray) -> tuple[pa.Table, Ints]:
    """The distinct relations with their negations, sorted, and the row of each edge's."""
    stored, words = codes(column.dictionary_encode())
    names = [_split_negation(word) for word in words]
    known = sorted(set(names))
    code = np.array([known.index(name) for name in names], dtype=np.int64)
    table = pa.table(list(zip(*known, strict=True)), ["name", "negated"])
    return table, code[stored]


def _split_negation(relation: str) -> tuple[str, bool]:
    """Split a relation into its name and whether it is negated.

    >>> _split_negation("NotDesires"), _split_negation("Notes")
    (('Desires', True), ('Notes', False))
    """
    rest = relation.removeprefix("Not")
    return (rest, True) if rest != relation and rest[:1].isupper() else (relation, False)


def _order(relation: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The order that sorts edges, and the places in it where a new edge begins."""
    order = np.lexsort((end, start, relation))
    new = np.ones(order.size, dtype=np.bool_)
    columns = [column[order] for column in (relation, start, end)]
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return order, np.flatnonzero(new)
