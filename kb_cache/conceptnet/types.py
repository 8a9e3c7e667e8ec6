"""ConceptNet as flat Arrow tables and graphs over integer concept ids.

Concepts are ids, not texts:

    from kb_cache.conceptnet.load import load_conceptnet

    cn = load_conceptnet("5.7")
    start, end, weight = cn.edges("UsedFor")
    cn.concepts["text"].take(end[:3])
    cn.graph("IsA").walk(cn.find("dog"), max_hops=2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from kb_cache.graph import Graph, Walk
from kb_cache.knowledge import Loaded
from kb_cache.unpack import MalformedLines
from kbprobe.arrays import Bools, Floats, Ints, contains
from kbprobe.columns import codes, single_chunk, to_numpy
from kbprobe.errors import SourceError, UsageError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "conceptnet"
#: What ``kb-cache fetch conceptnet`` fetches by default.
DEFAULT_VERSION = "5.7"

#: Symmetric relations; a dump states each of their edges in one direction only.
SYMMETRIC = frozenset((
    "Antonym", "DistinctFrom", "EtymologicallyRelatedTo", "LocatedNear", "RelatedTo", "SimilarSize",
    "SimilarTo", "Synonym",
))  # fmt: skip

#: A source with more malformed lines than this many and this share is refused.
TOLERATED, TOLERATED_SHARE = 10, 0.01


class Edges(NamedTuple):
    """Edges of one relation: three parallel arrays, sorted by (start, end)."""

    start: Ints
    end: Ints
    weight: Floats


@dataclass(frozen=True, eq=False)
class ConceptNet(Loaded):
    """A ConceptNet, or a part of it.

    A concept's id is its row in `concepts`, which is sorted by URI: ``/c/en/dog`` comes before
    its senses ``/c/en/dog/n`` and ``/c/en/dog/n/wn/animal``. Ids are not stable between
    snapshots. `select` keeps them.

    Attributes:
        concepts: ``text`` ("man best friend": ConceptNet's own spelling, with spaces),
            ``language``, ``pos`` ("n", "v", "a", "r" or "" where the source gives none), ``sense``
            (what follows it in the URI: "wn/animal", "wikt/en_1", or "").
        assertions: a row for each edge: ``start``, ``end`` (concepts), ``weight`` (ConceptNet's:
            1 for one voice; more is more trusted), ``dataset`` ("/d/conceptnet/4/en"),
            ``surface`` (the sentence that it was read from, its ends in [[]]; null where there is
            none). Sorted by relation, negation, start, end; no two rows agree in these.
        relations: ``name`` ("Desires"), ``negated`` (True for what sources call "NotDesires"),
            ``edges``: the number of rows of `assertions`, which follow in this order.
    """

    concepts: pa.Table
    assertions: pa.Table
    relations: pa.Table

    def __len__(self) -> int:
        """Number of concepts."""
        return int(self.concepts.num_rows)

    def __repr__(self) -> str:
        return (
            f"<ConceptNet {self.name}: {len(self):,} concepts, "
            f"{self.assertions.num_rows:,} edges, digest {self.digest[:12]}>"
        )

    @cached_property
    def start(self) -> npt.NDArray[np.int32]:
        """The start of every edge."""
        return to_numpy(self.assertions["start"])

    @cached_property
    def end(self) -> npt.NDArray[np.int32]:
        """The end of every edge."""
        return to_numpy(self.assertions["end"])

    @cached_property
    def weight(self) -> Floats:
        """The weight of every edge."""
        return to_numpy(self.assertions["weight"])

    @cached_property
    def _rows(self) -> dict[tuple[str, bool], slice]:
        names = self.relations["name"].to_pylist()
        negated = self.relations["negated"].to_pylist()
        bounds = [0, *np.cumsum(to_numpy(self.relations["edges"])).tolist()]
        slices = map(slice, bounds[:-1], bounds[1:])
        return dict(zip(zip(names, negated, strict=True), slices, strict=True))

    @cached_property
    def relation_names(self) -> list[str]:
        """The relations, sorted, including those that only occur negated."""
        return sorted({name for name, _ in self._rows})

    def rows(self, relation: str, negated: bool = False) -> slice:
        """Return the rows of `assertions` with a relation, or its negation; may be empty.

        Raises:
            UsageError: the relation is unknown, negated or not.
        """
        if relation not in self.relation_names:
            hint = did_you_mean(relation, self.relation_names)
            raise UsageError(f"{self.name} has no relation {relation!r}.{hint}")
        return self._rows.get((relation, negated), slice(0, 0))

    def edges(self, relation: str, negated: bool = False) -> Edges:
        """Return the edges of a relation, or of its negation, as the source states them."""
        rows = self.rows(relation, negated)
        start, end = self.start[rows], self.end[rows]
        return Edges(start.astype(np.int64), end.astype(np.int64), self.weight[rows])

    def graph(self, relation: str, negated: bool = False) -> Graph:
        """Return the graph of a relation, from start to end; built once. See `rows` for errors.

        A symmetric relation (`SYMMETRIC`) is followed both ways, and needs no `reverse`.
        """
        key = (relation, negated)
        if key not in self._graphs:
            start, end, _ = self.edges(relation, negated)
            if relation in SYMMETRIC:
                start, end = np.concatenate([start, end]), np.concatenate([end, start])
            self._graphs[key] = Graph.from_edges(len(self), start, end)
        return self._graphs[key]

    @cached_property
    def _graphs(self) -> dict[tuple[str, bool], Graph]:
        return {}

    def reverse(self, relation: str) -> Graph:
        """Return the graph of a relation, from end to start; built once."""
        return self.graph(relation).reversed

    def holds(
        self, relation: str, start: npt.ArrayLike, end: npt.ArrayLike, negated: bool = False
    ) -> Bools:
        """Return for each pair of concepts (parallel arrays of ids) whether an edge joins them.

        False means that ConceptNet does not say so, not that it is false.
        """
        sources, targets = np.asarray(start, np.int64), np.asarray(end, np.int64)
        graph = self.graph(relation, negated)
        nodes = np.repeat(np.arange(len(graph), dtype=np.int64), graph.degrees)
        return contains(nodes * len(self) + graph.indices, sources * len(self) + targets)

    def ancestors(self, concepts: npt.ArrayLike, max_hops: int = 2) -> Walk:
        """Return what concepts are, following at most ``max_hops`` hops of IsA.

        ConceptNet's IsA is not a taxonomy: each hop adds errors (a cat is a pet, a pet is a
        friend, a friend is a person), hence the low default.
        """
        return self.graph("IsA").walk(concepts, max_hops)

    @cached_property
    def terms(self) -> Ints:
        """For every concept, the first concept of the same text and language.

        This is the one without part of speech and sense, if there is one; ``cn.terms[start]``
        therefore takes edges from senses to words.
        """
        text = single_chunk(self.concepts["text"]).dictionary_encode()
        language, languages = codes(self.concepts["language"])
        key = to_numpy(text.indices).astype(np.int64) * max(len(languages), 1) + language
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return np.asarray(first[inverse], dtype=np.int64)

    def find(self, text: str) -> Ints:
        """Return the concepts of a text ("guide dog"), including its senses; may be empty."""
        import pyarrow.compute as pc

        same = pc.equal(single_chunk(self.concepts["text"]), text.replace("_", " "))
        return to_numpy(pc.indices_nonzero(same)).astype(np.int64)

    def lookup(self, texts: Sequence[str]) -> Ints:
        """Return the first concept (see `terms`) of each of many texts; -1 if there is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        asked = pa.array(texts, pa.string()).dictionary_encode()
        # The few texts are looked up among the many, so that no table of the many is needed.
        place = pc.index_in(single_chunk(self.concepts["text"]), value_set=asked.dictionary)
        rows = to_numpy(pc.indices_nonzero(pc.is_valid(place))).astype(np.int64)
        found = np.full(len(asked.dictionary), -1, dtype=np.int64)
        # If a text has several concepts, the first is written last.
        found[to_numpy(place.take(pa.array(rows[::-1])))] = rows[::-1]
        return np.asarray(found[to_numpy(asked.indices)])

    def select(self, mask: Bools) -> ConceptNet:
        """Keep the rows of `assertions` that are marked; concepts and their ids do not change.

        Raises:
            ValueError: the mask and `assertions` have different lengths.
        """
        import pyarrow as pa

        if mask.shape != (self.assertions.num_rows,):
            raise ValueError(f"a mask of {mask.shape} for {self.assertions.num_rows} edges")
        counts = [int(np.count_nonzero(mask[rows])) for rows in self._rows.values()]
        relations = self.relations.set_column(2, "edges", pa.array(counts, pa.int64()))
        assertions = self.assertions.filter(pa.array(mask)).combine_chunks()
        return replace(self, assertions=assertions, relations=relations)


@dataclass(frozen=True)
class Selection:
    """Which edges of a source are kept.

    Attributes:
        languages: codes that both ends must have ("en"); if empty, any, but no web addresses.
        relations: names such as "IsA"; each includes its negation ("NotIsA"). If empty, all.
    """

    languages: tuple[str, ...] = ("en",)
    relations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for language in self.languages:
            if not language.replace("-", "").isalnum():
                raise UsageError(f"{language!r} is not a language code such as 'en'")
        for relation in self.relations:
            if relation.startswith("/") or not relation.replace("/", "").isalnum():
                raise UsageError(f"{relation!r} is not the name of a relation such as 'IsA'")

    @property
    def relation_names(self) -> list[str]:
        """The relations and their negations, as sources spell them; empty for all."""
        return sorted({name for r in self.relations for name in (r, f"Not{r}")})


class Malformed(MalformedLines):
    """The malformed lines of a source of ConceptNet."""

    def check(self) -> None:
        """Raise an error for more malformed lines than `TOLERATED` and `TOLERATED_SHARE` of all."""
        if self.count > max(TOLERATED, TOLERATED_SHARE * self.lines):
            raise SourceError(
                f"{self.path}: {self.count:,} of {self.lines:,} lines are malformed; is it really "
                f"a dump of ConceptNet? {'; '.join(self.first)}"
            )


def edges_schema() -> pa.Schema:
    """Return the schema of batches of edges; ``start`` and ``end`` are URIs of concepts."""
    import pyarrow as pa

    names = ("relation", "start", "end", "weight", "dataset", "surface")
    return pa.schema([(name, pa.float64() if name == "weight" else pa.string()) for name in names])
