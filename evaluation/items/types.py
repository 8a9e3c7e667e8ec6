"""What is scored: the questions of one split of a probe, wherever they were read from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.items.columns import Item as Item
from evaluation.items.columns import ItemColumns as ItemColumns
from kbprobe.arrays import Ints, run_starts
from kbprobe.columns import arrow_type, codes
from kbprobe.errors import KbprobeError

if TYPE_CHECKING:
    import pyarrow as pa

    from kbprobe.format.manifest import Manifest


ABOUT = {
    "cluster": "string",
    "hops": "int32",
    "distractor_family": "string",
    "distractor_hops": "int32",
    "pos": "string",
    "content": "string",
    "template": "string",
    "concept": "string",
    "fold": "int32",
    "choice_hops": "list<item: int32>",
    "choice_families": "list<item: string>",
    "surface_form": "string",
}
"""Metadata of an item other than its question: columns and their Arrow types."""


@dataclass(frozen=True, slots=True)
class Links:
    """The single facts that each question rests on, and the relation that it asks for.

    Attributes:
        fact_ids: for each question the ids of the rows of another config that ask for its facts;
            "" if there is none. Empty if the question names no facts.
        relations: the relation between concept and gold; "" if unknown.
    """

    fact_ids: tuple[tuple[str, ...], ...]
    relations: tuple[str, ...]

    @classmethod
    def joined(cls, parts: Sequence[Links]) -> Links:
        """Return the links of some questions after those of others."""
        return cls(
            tuple(ids for part in parts for ids in part.fact_ids),
            tuple(relation for part in parts for relation in part.relations),
        )

    def take(self, rows: Sequence[int]) -> Links:
        """Return the links of some questions, in the order given."""
        return Links(
            tuple(self.fact_ids[row] for row in rows), tuple(self.relations[row] for row in rows)
        )


@dataclass(frozen=True)
class SplitQuestions:
    """The questions of a split, and metadata of each (:data:`ABOUT`, null if unknown).

    ``links`` is None if no question names the facts that it rests on, ``arguments`` if none names
    the values that fill its template. ``notes`` counts changes made while reading.
    """

    items: ItemColumns
    about: pa.Table
    links: Links | None = None
    arguments: pa.Array | None = None
    notes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ProbeSplit:
    """One split of a probe, ready to be scored.

    Attributes:
        name: the probe's name, as results call it.
        source: the folder, file or Hub id it was read from; of a dataset in memory
            ``memory:`` and the start of its fingerprint.
        items: the questions, in the order of the source.
        about: metadata with one row per item, in columns named as in the item schema: always
            ``cluster`` (string), ``hops`` (int32, null: unknown), ``distractor_family`` (string or
            null), ``distractor_hops`` (int32 or null), ``pos``, ``template`` and ``concept``
            (string or null); ``fold`` (int32) where the rows have one.
        clustered: whether ``cluster`` says anything; if not, it repeats the item's id and rows
            are taken to be independent.
        fingerprint: sha256 of everything that a score depends on, in order.
        manifest: the built probe's manifest, for its audit's baselines; None where there is none.
        links: the facts that the questions rest on; None where no question names any.
        arguments: what fills each question's template, of :func:`arguments_type`; None where no
            question has any.
        notes: counts of changes made while reading, for results.
        drawn_from: the number of rows and clusters in the whole split, if only some were drawn.
        measured: what was measured on the rows alone, for all runs that share them.
    """

    name: str
    source: str
    split: str
    items: ItemColumns
    about: pa.Table
    clustered: bool
    fingerprint: str
    manifest: Manifest | None = field(default=None, repr=False)
    links: Links | None = field(default=None, repr=False)
    arguments: pa.Array | None = field(default=None, repr=False)
    notes: Mapping[str, int] = field(default_factory=dict)
    drawn_from: tuple[int, int] | None = None
    measured: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def clusters(self) -> int:
        """The number of clusters of the rows; if there are none, each row counts as one."""
        return len(self.about["cluster"].unique())

    def take(self, rows: Sequence[int]) -> ProbeSplit:
        """Return the split restricted to some of its rows, in the given order."""
        items = self.items.take(rows)
        return replace(
            self,
            items=items,
            about=self.about.take(rows),
            fingerprint=fingerprint(items),
            links=self.links and self.links.take(rows),
            arguments=None if self.arguments is None else self.arguments.take(rows),
        )


def column_questions(items: Sequence[Item], columns: Mapping[str, pa.Array]) -> SplitQuestions:
    """Combine checked items with their metadata, as columns of the right types."""
    import pyarrow as pa

    schema = pa.schema([(name, arrow_type(kind)) for name, kind in ABOUT.items()])
    about = pa.table([columns[name] for name in ABOUT], schema=schema)
    links = None
    if len(columns["fact_ids"].flatten()):
        ids = tuple(tuple(names or ()) for names in columns["fact_ids"].to_pylist())
        links = Links(ids, tuple(name or "" for name in columns["relation"].to_pylist()))
    arguments = columns["arguments"] if len(columns["arguments"].flatten()) else None
    return SplitQuestions(ItemColumns.of(items), about, links, arguments)


def probe_split(
    name: str,
    source: str,
    split: str,
    found: SplitQuestions,
    manifest: Manifest | None = None,
) -> ProbeSplit:
    """Make a split from questions; a row that names no cluster forms a separate cluster.

    Raises:
        KbprobeError: there are no questions.
    """
    import pyarrow.compute as pc

    items, cluster = found.items, found.about["cluster"]
    if not len(items):
        raise KbprobeError(f"{source}, split {split}, holds no rows. Nothing can be scored.")
    at = found.about.schema.get_field_index("cluster")
    about = found.about.set_column(at, "cluster", pc.coalesce(cluster, items.ids))
    clustered = cluster.null_count < len(cluster)
    further = (manifest, found.links, found.arguments, found.notes)
    return ProbeSplit(name, source, split, items, about, clustered, items.fingerprint(), *further)


def joined(parts: Sequence[ProbeSplit], name: str, split: str) -> ProbeSplit:
    """Put the rows of several splits or configs together, one after another.

    A built probe's manifest is kept, without its audit, which is for other rows.
    """
    import pyarrow as pa

    items = ItemColumns.joined([part.items for part in parts])
    links = [part.links for part in parts if part.links is not None]
    arguments = [part.arguments for part in parts if part.arguments is not None]
    notes: Counter[str] = Counter()
    for part in parts:
        notes.update(part.notes)
    built = parts[0].manifest
    return replace(
        parts[0],
        name=name,
        split=split,
        items=items,
        about=pa.concat_tables([part.about for part in parts]),
        clustered=any(part.clustered for part in parts),
        fingerprint=fingerprint(items),
        manifest=built and built.model_copy(update={"audit": None}),
        links=Links.joined(links) if len(links) == len(parts) else None,
        arguments=_concatenated(arguments) if len(arguments) == len(parts) else None,
        notes=dict(notes),
    )


def _concatenated(arrays: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array:
    import pyarrow as pa

    chunked = pa.chunked_array(
        [chunk for array in arrays for chunk in getattr(array, "chunks", [array])]
    )
    return chunked.combine_chunks()


def arguments_type() -> pa.DataType:
    """Return the Arrow type of a column of arguments: lists of name and value, both text."""
    from kbprobe.format.items import arrow_schema

    return arrow_schema().field("arguments").type


def fingerprint(items: Sequence[Item]) -> str:
    """Hash the items: ids, setups, texts, choices and answers, in order."""
    return ItemColumns.of(items).fingerprint()


def setups_of(items: Sequence[Item]) -> frozenset[str]:
    """Return the setups that occur in the items."""
    if isinstance(items, ItemColumns):
        return frozenset(items.setups.unique().to_pylist())
    return frozenset(item.setup for item in items)


def take_items(items: Sequence[Item], rows: Ints | Sequence[int]) -> list[Item]:
    """Return some items, in the order given."""
    if isinstance(items, ItemColumns):
        return list(items.take(rows))
    return [items[row] for row in rows]


def questions_of(items: Sequence[Item]) -> tuple[Ints, list[str]]:
    """Return the number of each item's question, shape [items], and the distinct questions."""
    column = ItemColumns.of(items).questions
    numbers, words = codes(column)
    used, own = np.unique(numbers, return_inverse=True)
    return own.astype(np.int64), [words[number] for number in used.tolist()]


def ids_of(items: Sequence[Item]) -> list[str]:
    """Return the ids of items, in order."""
    if isinstance(items, ItemColumns):
        ids: list[str] = items.ids.to_pylist()
        return ids
    return [item.id for item in items]


def choice_starts(items: Sequence[Item]) -> Ints:
    """Number all choices of all items: item ``i`` has choices ``starts[i] .. starts[i + 1]``."""
    if isinstance(items, ItemColumns):
        return items.starts
    return run_starts(len(item.choices) for item in items)
