"""Compiling ConceptNet: filters of noise, with a report of what each removed, and tables.

Much of ConceptNet was typed by a single volunteer, without stop words and endings: "man best
friend", "go bed". The filters keep edges that several people stated, between words (and phrases
that WordNet has) of the parts of speech that the relation joins.

    filtered, report = filter_noise(cn, NoiseFilter(min_weight=2))
    print(report)

Filtered edges may be asserted. To decide whether something may be *denied*, ask the unfiltered
ConceptNet (`ConceptNet.holds`); its ids are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kb_cache.conceptnet.types import ConceptNet
from kb_cache.frequency import zipf_frequencies
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Ints, contains
from kbprobe.columns import codes, single_chunk, to_numpy
from kbprobe.errors import SourceError, UsageError

PosSets = npt.NDArray[np.uint8]

#: Parts of speech as bits, so that a word can have several.
NOUN, VERB, ADJECTIVE, ADVERB = 1, 2, 4, 8
ANY = NOUN | VERB | ADJECTIVE | ADVERB
_BITS = {"n": NOUN, "v": VERB, "a": ADJECTIVE, "s": ADJECTIVE, "r": ADVERB}

_EVENT = NOUN | VERB
#: Parts of speech of start and end that relations expect; other relations take any.
EXPECTED: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys((
        "AtLocation", "HasA", "InstanceOf", "IsA", "LocatedNear", "MadeOf", "PartOf", "SimilarSize",
        "SymbolOf",
    ), (NOUN, NOUN)),
    **dict.fromkeys((
        "Causes", "CausesDesire", "HasFirstSubevent", "HasLastSubevent", "HasPrerequisite",
        "HasSubevent", "MotivatedByGoal",
    ), (_EVENT, _EVENT)),
    **dict.fromkeys(("CreatedBy", "Desires", "UsedFor"), (NOUN, _EVENT)),
    **dict.fromkeys(("CapableOf", "ReceivesAction"), (NOUN, VERB)),
    "HasProperty": (NOUN, ADJECTIVE),
    "MannerOf": (VERB, VERB),
}  # fmt: skip

#: A part of speech counts if the word has it in at least this share of the uses of its commonest
#: one in WordNet's tagged texts: "read" does not count as a noun, although WordNet lists one.
_COMMON_SHARE = 0.1

#: Words without independent meaning: function words, and nouns that can replace any other.
STOP_WORDS = frozenset(
    """
    a about all an and another any anybody anyone anything are as at be been being both but by can
    could did do does each either every everybody everyone everything few for from had has have
    he her hers him his how i if in into is it its itself kind lot many may me might mine more
    most much must my myself neither no nobody none nor not nothing of off on one ones or other
    others our ours own several shall she should some somebody someone something somewhere sort
    stuff such than that the their theirs them themselves these they thing this those to too two
    type us various very was way we were what whatever when where which who whom whose why will
    with would you your yours yourself
    """.split()  # noqa: SIM905 - a list with quotes would be three pages long
)


class NoiseFilter(NamedTuple):
    """Which edges are noise; a filter of 0 or False removes none.

    Attributes:
        self_loops: edges of a word to itself.
        contradictions: edges that are stated both positively and negatively.
        min_weight: edges of less weight.
        stop_words: words without an independent meaning.
        min_length: words of fewer characters.
        max_words: terms of more words.
        min_zipf: terms of a lower Zipf frequency.
        known_terms: terms without a part of speech in ConceptNet or WordNet: misspelt words, and
            most phrases, which lack their small words and endings.
        parts_of_speech: edges whose parts of speech do not fit the relation.
    """

    self_loops: bool = True
    contradictions: bool = True
    min_weight: float = 2.0
    stop_words: bool = True
    min_length: int = 3
    max_words: int = 3
    min_zipf: float = 3.0
    known_terms: bool = True
    parts_of_speech: bool = True


NO_FILTER = NoiseFilter(False, False, 0, False, 0, 0, 0, False, False)


class FilterStep(NamedTuple):
    """What one filter did: how many edges it removed, how many were left after it."""

    filter: str
    removed: int
    left: int


@dataclass(frozen=True)
class FilterReport:
    """What each filter removed of the edges left by the previous ones; ``edges`` is the total."""

    edges: int
    steps: tuple[FilterStep, ...]

    def __str__(self) -> str:
        rows = [("filter", "removed", "left"), ("(none)", "", f"{self.edges:,}")]
        rows += [(step.filter, f"{step.removed:,}", f"{step.left:,}") for step in self.steps]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            f"{name:<{widths[0]}}  {removed:>{widths[1]}}  {left:>{widths[2]}}"
            for name, removed, left in rows
        )


class Filtered(NamedTuple):
    """The edges that are left, and a report on those removed."""

    conceptnet: ConceptNet
    report: FilterReport


def filter_noise(
    conceptnet: ConceptNet, options: NoiseFilter | None = None, wordnet: WordNet | None = None
) -> Filtered:
    """Remove the edges that look like noise; concepts and their ids stay.

    Args:
        conceptnet: English only, as frequencies, stop words and parts of speech are.
        options: CN-100K has no weights: there, ``min_weight`` must be 1 or less.
        wordnet: the source of parts of speech and phrases; by default WordNet 3.0.

    Raises:
        UsageError: there are concepts of other languages.
    """
    chosen = options or NoiseFilter()
    _, languages = codes(conceptnet.concepts["language"])
    if set(languages) - {"en"}:
        raise UsageError(
            f"{conceptnet.name} holds concepts in {', '.join(sorted(languages))}; the noise filter "
            "knows English alone. Fetch it with --language en"
        )
    left = np.ones(conceptnet.assertions.num_rows, dtype=np.bool_)
    steps = []
    for name, keeps in _filters(_TermFeatures(conceptnet, wordnet), chosen):
        rows = np.flatnonzero(left)
        removed = rows[~keeps(rows)]
        left[removed] = False
        steps.append(FilterStep(name, removed.size, rows.size - removed.size))
    return Filtered(conceptnet.select(left), FilterReport(left.size, tuple(steps)))


RowFilter = Callable[[Ints], Any]


def _filters(terms: _TermFeatures, chosen: NoiseFilter) -> list[tuple[str, RowFilter]]:
    """Return the active filters: functions from row numbers to a mask of the rows to keep."""
    cn, least, frequent = terms.conceptnet, chosen.min_weight, chosen.min_zipf
    length, words = chosen.min_length, chosen.max_words
    of_ends: list[tuple[str, object, RowFilter]] = [
        ("stop words", chosen.stop_words, terms.telling),
        (f"shorter than {length} characters", length,
         lambda ids: to_numpy(pc.utf8_length(terms.texts(ids))) >= length),
        (f"more than {words} words", words,
         lambda ids: to_numpy(pc.count_substring(terms.texts(ids), " ")) < words),
        (f"Zipf frequency below {frequent:g}", frequent,
         lambda ids: zipf_frequencies(terms.texts(ids).to_pylist()) >= frequent),
        ("part of speech unknown", chosen.known_terms, lambda ids: terms.pos[ids] > 0),
    ]  # fmt: skip
    filters: list[tuple[str, object, RowFilter]] = [
        (
            "self-loops",
            chosen.self_loops,
            lambda rows: cn.terms[cn.start[rows]] != cn.terms[cn.end[rows]],
        ),
        ("contradictions", chosen.contradictions, lambda rows: _uncontradicted(cn, rows)),
        (f"weight below {least:g}", least, lambda rows: cn.weight[rows] >= least),
        *((name, on, partial(terms.both, passes_filter=passes)) for name, on, passes in of_ends),
        ("part of speech unfit", chosen.parts_of_speech, terms.fitting),
    ]
    return [(name, keeps) for name, on, keeps in filters if on]


def _uncontradicted(cn: ConceptNet, rows: Ints) -> Bools:
    """Return whether no edge of the opposite sign joins the same words, whatever its weight."""
    key = cn.terms[cn.start] * len(cn) + cn.terms[cn.end]
    stays = np.ones(key.size, dtype=np.bool_)
    for relation in cn.relation_names:
        stated, denied = cn.rows(relation), cn.rows(relation, negated=True)
        both = np.intersect1d(key[stated], key[denied])
        stays[stated] = ~contains(both, key[stated])
        stays[denied] = ~contains(both, key[denied])
    return stays[rows]


@dataclass
class _TermFeatures:
    """Properties of concepts that the filters use, computed only for the concepts at hand."""

    conceptnet: ConceptNet
    wordnet: WordNet | None

    def both(self, rows: Ints, passes_filter: Callable[[Ints], Bools]) -> Bools:
        """Return whether both ends of edges pass; each concept is checked once."""
        start, end = self.conceptnet.start[rows], self.conceptnet.end[rows]
        passes = np.zeros(len(self.conceptnet), dtype=np.bool_)
        passes[start] = passes[end] = True
        used = np.flatnonzero(passes)
        passes[used] = passes_filter(used)
        return np.asarray(passes[start] & passes[end])

    def texts(self, ids: Ints) -> pa.Array:
        return single_chunk(self.conceptnet.concepts["text"]).take(pa.array(ids))

    def telling(self, ids: Ints) -> Bools:
        """Mark the concepts whose text holds more than stop words."""
        texts = self.texts(ids).to_pylist()
        return np.array([not STOP_WORDS.issuperset(text.split()) for text in texts], np.bool_)

    @cached_property
    def pos(self) -> PosSets:
        """The parts of speech of every concept: its URI's, otherwise WordNet's, otherwise none."""
        concepts = self.conceptnet.concepts
        stored, names = codes(concepts["pos"])
        stated = np.array([_BITS.get(name, 0) for name in names], dtype=np.uint8)[stored]
        texts = single_chunk(concepts["text"])
        known = parts_of_speech(texts, self.wordnet or load_wordnet())
        return np.where(stated > 0, stated, known)

    def fitting(self, rows: Ints) -> Bools:
        """Return whether the parts of speech of both ends fit the relation; unknown ones do."""
        cn = self.conceptnet
        wanted = np.full((2, cn.assertions.num_rows), ANY, dtype=np.uint8)
        for relation, kinds in EXPECTED.items():
            if relation not in cn.relation_names:
                continue
            for negated in (False, True):
                wanted[:, cn.rows(relation, negated)] = np.array(kinds)[:, None]
        fits = np.ones(rows.size, dtype=np.bool_)
        for ends, kind in zip((cn.start[rows], cn.end[rows]), wanted[:, rows], strict=True):
            pos = self.pos[ends]
            fits &= (pos == 0) | ((pos & kind) > 0)
        return fits


def parts_of_speech(texts: object, wordnet: WordNet) -> PosSets:
    """Return WordNet's parts of speech of each term of an Arrow array, as bits (`NOUN`, ...).

    0 if WordNet does not have the term (in lower case). Parts of speech in which the term is rare
    in WordNet's tagged texts are left out.
    """
    lemmas = pc.utf8_lower(wordnet.lemma_texts()).dictionary_encode()
    lemma = to_numpy(lemmas.indices).astype(np.int64)
    pos = np.array([POS.replace("s", "a").index(p.replace("s", "a")) for p in POS])
    pos = np.minimum(pos, 3)[wordnet.pos_codes[to_numpy(wordnet.senses["synset"])]]
    key = lemma * 4 + pos
    size = len(lemmas.dictionary) * 4
    listed = np.bincount(key, minlength=size).reshape(-1, 4) > 0
    uses = np.bincount(key, to_numpy(wordnet.senses["count"]), size).reshape(-1, 4)
    common = listed & (uses >= _COMMON_SHARE * uses.max(axis=1, keepdims=True))
    sets = (common * np.array([NOUN, VERB, ADJECTIVE, ADVERB])).sum(axis=1).astype(np.uint8)
    at = to_numpy(pc.fill_null(pc.index_in(texts, value_set=lemmas.dictionary), -1))
    return np.where(at < 0, np.uint8(0), sets[at])


_PARTS = r"^/c/(?P<language>[^/]+)/(?P<text>[^/]+)(?:/(?P<pos>[^/]*)(?:/(?P<sense>.*))?)?$"


class NoEdges(SourceError):
    """No edge of a source is wanted, or all are malformed."""


def compile_edges(batches: Iterable[pa.RecordBatch]) -> tuple[dict[str, pa.Table], int]:
    """Compile edges into the tables of ``ConceptNet``; also return how many edges were merged.

    Concepts are sorted by their URIs, edges by relation, negation, start and end, whatever their
    order in the source. Edges that agree in all four are merged: their weights are added, as
    ConceptNet adds those of an edge's sources, and the first gives dataset and surface text.

    Args:
        batches: of `kb_cache.conceptnet.types.edges_schema`; all are held in memory.

    Raises:
        NoEdges: there are none.
    """
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        raise NoEdges(
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
    """Return the distinct concepts of all ends, and the id of each: starts, then ends."""
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
    """Return the distinct relations with their negations, sorted, and the row of each edge's."""
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
    """Return the order that sorts edges, and the positions in it where a new edge begins."""
    order = np.lexsort((end, start, relation))
    new = np.ones(order.size, dtype=np.bool_)
    columns = [column[order] for column in (relation, start, end)]
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return order, np.flatnonzero(new)
