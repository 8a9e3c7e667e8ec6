"""Words for the two slots of an Always-Never statement, and the pairs of each family.

A slot is filled with words that are of its kind according to both ConceptNet and WordNet: by IsA
alone, a party and a book are animals. Words are shown in the plural ("rhinoceroses"), or in the
singular if they are mass nouns ("fur").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, field_validator

from builders.english.inflection import is_plural, noun_plural
from builders.english.kin import shares_a_word
from builders.english.nouns import Nouns
from builders.english.word_lists import data_table, word_list, word_pairs
from builders.properties.facts import listed, rude, unfit
from kb_cache.conceptnet.filter import ADJECTIVE, VERB, parts_of_speech
from kb_cache.conceptnet.types import ConceptNet
from kb_cache.frequency import zipf_frequencies
from kb_cache.graph import Graph
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Floats, Ints, joined
from kbprobe.columns import mask, positions, single_chunk, to_numpy

PACKAGE = "builders.always_never"


class _SlotEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WordKind(_SlotEntry):
    """Words of one kind.

    Attributes:
        isa: ConceptNet's names of the kind, to which IsA edges lead.
        synsets: hypernyms of the word's sense in WordNet; empty for words that are not nouns.
        ends: relation and kind: the ends of this relation from words of that kind fit as well.
        any_sense: whether any sense of the word counts, or only the first.
        not_below: synsets whose words are excluded.
        words: maximum number of words of a term.
        counted: whether only countable nouns fit.
        pos: the part of speech.
        left_out: words that fit in principle but read oddly.
    """

    isa: tuple[str, ...] = ()
    synsets: tuple[str, ...] = ()
    ends: tuple[str, str] | None = None
    any_sense: bool = False
    not_below: tuple[str, ...] = ()
    words: int = 1
    counted: bool = False
    pos: Literal["noun", "verb", "adjective"] = "noun"
    left_out: frozenset[str]

    @field_validator("left_out", mode="before")
    @classmethod
    def _terms(cls, text: Any) -> Any:
        return [word.replace("_", " ") for word in str(text).split()]


KINDS: Mapping[str, WordKind] = {
    name: WordKind(**values) for name, values in data_table("kinds", PACKAGE).items()
}
"""Every kind, by name."""


MAX_HOPS = 2
"""Maximum number of IsA edges from a word to its kind: each edge adds errors."""

_BITS = {"verb": VERB, "adjective": ADJECTIVE}

PLURAL_ZIPF = 1.3
"""Minimum frequency (Zipf) of a plural. Rarer ones read oddly, so their words are left out."""

MIN_EDGE_WEIGHT = 2.0
"""Minimum weight of an edge that makes an activity or a quality eligible."""


class SlotWords(NamedTuple):
    """Words that may fill a slot: parallel arrays, sorted by id.

    ``shown`` is the form in which a statement shows them, ``plural`` whether it takes "are".
    """

    id: Ints
    text: list[str]
    kind: list[str]
    shown: list[str]
    plural: list[bool]

    @property
    def size(self) -> int:
        """The number of words."""
        return int(self.id.size)

    def take(self, rows: Sequence[int]) -> SlotWords:
        """Return some of the terms."""
        columns = ([column[row] for row in rows] for column in self[1:])
        return SlotWords(self.id[np.array(rows, dtype=np.int64)], *columns)  # type: ignore[arg-type]


class StatedEdge(NamedTuple):
    """An edge of ConceptNet, its ends spelled out."""

    subject: str
    relation: str
    object: str


class Slots:
    """Finds the words that fit the slots."""

    def __init__(
        self, conceptnet: ConceptNet, wordnet: WordNet, min_zipf: float, screen: bool = True
    ) -> None:
        """Prepare to find words of a minimum frequency (Zipf), screened or not."""
        self.conceptnet, self.wordnet = conceptnet, wordnet
        self.min_zipf, self.screen = min_zipf, screen
        self.texts = single_chunk(conceptnet.concepts["text"])
        self._found: dict[str, SlotWords] = {}
        self._goals: dict[str, set[int]] = {}
        self._reasons: dict[tuple[int, str], list[StatedEdge]] = {}

    def terms(self, *kinds: str) -> SlotWords:
        """Return the words of some kinds; a word of several kinds counts for the first."""
        rows = {
            row[0]: row
            for name in reversed(kinds)
            for row in zip(*self._of_kind(name), strict=True)
        }
        return _terms([rows[word] for word in sorted(rows)])

    def told(self, relation: str, negated: bool = False) -> tuple[Ints, Ints, Floats]:
        """Return a relation's edges between words (start, end, weight); none if it is unknown."""
        if relation not in self.conceptnet.relation_names:
            none = np.empty(0, dtype=np.int64)
            return none, none, np.empty(0)
        start, end, weight = self.conceptnet.edges(relation, negated)
        return self.conceptnet.terms[start], self.conceptnet.terms[end], weight

    def reasons(self, concept: int, kind: str) -> list[StatedEdge]:
        """Return the shortest path of IsA edges from a word to a name of the kind, if any."""
        if (concept, kind) not in self._reasons:
            self._reasons[concept, kind] = self._way_up(concept, self._tops(kind))
        return self._reasons[concept, kind]

    def _way_up(self, concept: int, goals: set[int]) -> list[StatedEdge]:
        ways: list[list[int]] = [[concept]]
        for _ in range(MAX_HOPS):
            ways = [
                [*way, above] for way in ways for above in self._isa.neighbours(way[-1]).tolist()
            ]
            if reached := [way for way in ways if way[-1] in goals]:
                names = [self.texts[i].as_py() for i in min(reached)]
                return [StatedEdge(one, "IsA", other) for one, other in pairwise(names)]
        return []

    @cached_property
    def _isa(self) -> Graph:
        """Return IsA edges between words, whichever of their senses they join."""
        start, end, _ = self.told("IsA")
        return Graph.from_edges(len(self.conceptnet), start, end)

    def _tops(self, kind: str) -> set[int]:
        """Return the concepts that ConceptNet uses for the kind."""
        if kind not in self._goals:
            self._goals[kind] = set(self.conceptnet.lookup(list(KINDS[kind].isa)).tolist()) - {-1}
        return self._goals[kind]

    def _of_kind(self, name: str) -> SlotWords:
        if name not in self._found:
            self._found[name] = self._find(name, KINDS[name])
        return self._found[name]

    def _find(self, name: str, kind: WordKind) -> SlotWords:
        ids = [np.empty(0, dtype=np.int64)]
        if kind.isa:
            top = np.array(sorted(self._tops(name)), dtype=np.int64)
            ids.append(self._isa.reversed.walk(top, MAX_HOPS).node)
        if kind.ends:
            relation, holders = kind.ends
            for negated in (False, True):
                start, end, weight = self.told(relation, negated)
                held = np.isin(start, self._of_kind(holders).id)
                ids.append(end[held & ((weight >= MIN_EDGE_WEIGHT) | (kind.pos == "noun"))])
        found = np.unique(np.concatenate(ids))
        texts = self.texts.take(pa.array(found))
        fits = ~unfit(texts, self.wordnet) & ~listed(texts, kind.left_out)
        fits &= ~(rude(texts) & self.screen)
        fits &= to_numpy(pc.count_substring(texts, " ")) < kind.words
        found, texts = found[fits], texts.filter(pa.array(fits))
        fits = zipf_frequencies(texts.to_pylist()) >= self.min_zipf
        if kind.synsets:
            fits &= self._nouns(texts, kind)
        else:
            fits &= (parts_of_speech(texts, self.wordnet) & _BITS[kind.pos]) > 0
        found, texts = found[fits], texts.filter(pa.array(fits))
        return _terms(list(self._worded(found, texts.to_pylist(), name, kind)))

    def _nouns(self, texts: pa.Array, kind: WordKind) -> Bools:
        """Mark the words whose first noun sense (or any) is below the kind's synsets in WordNet."""
        wordnet = self.wordnet
        goals = np.array([wordnet.synset_id(name) for name in kind.synsets], dtype=np.int64)
        below = np.union1d(goals, wordnet.hyponyms.walk(goals).node)
        barred = np.array([wordnet.synset_id(name) for name in kind.not_below], dtype=np.int64)
        below = np.setdiff1d(below, np.union1d(barred, wordnet.hyponyms.walk(barred).node))
        synset = wordnet.sense_synset
        noun = wordnet.pos_codes[synset] == POS.index("n")
        if not kind.any_sense:
            noun &= to_numpy(wordnet.senses["number"]) == 1
        rows = np.flatnonzero(noun & np.isin(synset, below))
        lemmas = pc.utf8_lower(wordnet.lemma_texts()).take(pa.array(rows))
        return mask(pc.is_in(texts, value_set=lemmas))

    def _worded(
        self, ids: Ints, texts: Sequence[str], name: str, kind: WordKind
    ) -> Iterator[tuple[int, str, str, str, bool]]:
        nouns = Nouns(self.wordnet, texts)
        if kind.pos != "noun":
            for i, text in zip(ids.tolist(), texts, strict=True):
                if nouns.is_verb(text) == (kind.pos == "verb"):
                    yield i, text, name, text, False
            return
        plurals = [noun_plural(text) for text in texts]
        common = zipf_frequencies(plurals) >= PLURAL_ZIPF
        for i, text, plural, known in zip(ids.tolist(), texts, plurals, common, strict=True):
            if nouns.is_verb(text) and not kind.any_sense:
                continue
            bare = not nouns.is_counted(text) or text.rsplit(" ", 1)[-1] in word_list("mass_foods")
            bare &= text not in word_pairs("irregular_plurals")
            if bare and is_plural(text):
                yield i, text, name, text, True
            elif bare and not kind.counted:
                yield i, text, name, text, False
            elif known:
                yield i, text, name, plural, True


def _terms(rows: list[tuple[int, str, str, str, bool]]) -> SlotWords:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(5)]
    ids = np.array(columns[0], dtype=np.int64)
    return SlotWords(ids, *columns[1:])


class EdgeSource(_SlotEntry):
    """Edges that say something about a pair: a relation from subject to object, or the reverse.

    If there are ``verbs``, the edge's end is one of them followed by the object ("eat mouse").
    """

    relation: str
    forward: bool = True
    verbs: tuple[str, ...] = ("",)


class StatementFamily(_SlotEntry):
    """A template family.

    Attributes:
        subjects, objects: the kinds of words in the slots (see `builders.always_never.slots`).
        sources: the edges by which ConceptNet can say something about a pair; none for comparisons.
        prompt: the statement without its adverb, for a language model to complete.
        left_out: objects that would upset annotators, or make no sense here.
    """

    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    sources: tuple[EdgeSource, ...] = ()
    prompt: str = "{} [MASK]."
    left_out: frozenset[str] = frozenset()


FAMILIES: Mapping[str, StatementFamily] = {
    name: StatementFamily(**values) for name, values in data_table("families", PACKAGE).items()
}


class Said(NamedTuple):
    """What ConceptNet says about pairs: parallel arrays with one row per edge.

    ``subject`` is an index of the ids asked about, ``object`` of the slot's words, and ``source``
    of the family's sources; ``start`` and ``end`` are the edge's own ends.
    """

    subject: Ints
    object: Ints
    source: Ints
    negated: Bools
    weight: Floats
    start: Ints
    end: Ints


@dataclass(frozen=True)
class StatementPool:
    """All pairs of a family.

    ``proposed`` are pairs that a language model proposed; None if none was used.
    """

    name: str
    family: StatementFamily
    subjects: SlotWords
    objects: SlotWords
    said: Said
    proposed: Bools | None = None

    def apart(self) -> Bools:
        """Return (subjects, objects) whether subject and object differ and share no word."""
        rows, columns = self.subjects.size, self.objects.size
        left, right = (pa.array(some.text, pa.string()) for some in (self.subjects, self.objects))
        one = np.repeat(np.arange(rows, dtype=np.int64), columns)
        other = np.tile(np.arange(columns, dtype=np.int64), rows)
        shared = shares_a_word(left, one, right, other).reshape(rows, columns)
        # Two words may be shown in the same form: the plural of "chili" and of "chilly".
        shown = (np.array(some.shown, dtype=str) for some in (self.subjects, self.objects))
        return np.asarray(~shared & ~np.equal.outer(*shown))

    def weights(self, negated: bool) -> Floats:
        """Return (subjects, objects) the largest weight of edges that state, or deny, each pair."""
        said, table = self.said, np.zeros((self.subjects.size, self.objects.size))
        lines = said.negated == negated
        np.maximum.at(table, (said.subject[lines], said.object[lines]), said.weight[lines])
        return table

    def edges(self, slots: Slots, subject: int, other: int) -> list[StatedEdge]:
        """Return the edges behind a pair: the kinds of its words, and the statements about it."""
        terms = (self.subjects, subject), (self.objects, other)
        found = [
            edge for words, at in terms for edge in slots.reasons(int(words.id[at]), words.kind[at])
        ]
        said = self.said
        lines = np.flatnonzero((said.subject == subject) & (said.object == other))
        for line in lines.tolist():
            name = self.family.sources[said.source[line]].relation
            start, end = (slots.texts[int(ends[line])].as_py() for ends in (said.start, said.end))
            found.append(StatedEdge(start, f"Not{name}" if said.negated[line] else name, end))
        return list(dict.fromkeys(found))


def said_of(slots: Slots, family: StatementFamily, subjects: Ints, objects: SlotWords) -> Said:
    """Find what ConceptNet says about subjects (ids, ascending) and the objects of a slot."""
    none = np.empty(0, dtype=np.int64)
    parts = [Said(none, none, none, none.astype(np.bool_), none.astype(np.float64), none, none)]
    verbs_used = sorted({verb for source in family.sources for verb in source.verbs} - {""})
    phrases = [f"{verb} {text}" for verb in verbs_used for text in objects.text]
    found = slots.conceptnet.lookup(phrases).reshape(len(verbs_used), objects.size)
    named: dict[str, Ints] = {"": objects.id, **dict(zip(verbs_used, found, strict=True))}
    for number, told in enumerate(family.sources):
        for negated in (False, True):
            start, end, weight = slots.told(told.relation, negated)
            own, other = (start, end) if told.forward else (end, start)
            for verb in told.verbs:
                row, column = positions(subjects, own), positions(named[verb], other)
                line = np.flatnonzero((row >= 0) & (column >= 0))
                source, sign = np.full(line.size, number), np.full(line.size, negated)
                ends = start[line], end[line]
                parts.append(Said(row[line], column[line], source, sign, weight[line], *ends))
    return joined(parts)
