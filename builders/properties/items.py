"""Build questions about two properties: texts, choices, and the facts that make golds true."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from builders.engine.plan import Facts, Nodes, Questions
from builders.english.inflection import gerund, noun_plural, past_participle
from builders.english.nouns import Nouns
from builders.properties.contrast import EVENTS
from builders.properties.facts import PLURAL_OBJECTS, PLURAL_PARTS, STEADY, Evidence
from builders.properties.rows import PropertyPairs
from kb_cache.conceptnet.types import ConceptNet
from kb_cache.frequency import zipf_frequencies
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.columns import single_chunk


def kinds_below(conceptnet: ConceptNet) -> Ints:
    """Return how many things are said to be a kind of each concept."""
    if "IsA" not in conceptnet.relation_names:
        return np.zeros(len(conceptnet), dtype=np.int64)
    below: Ints = conceptnet.reverse("IsA").degrees
    return below


class PropertyForms(Nouns):
    """Puts the objects of properties into the forms that the phrases of their relations require."""

    def activity(self, term: str) -> str:
        """Return a term as an activity or a thing: "lying down", "an accident"."""
        return gerund(term) if self.is_verb(term) else self.indefinite(term)

    def wish(self, term: str) -> str:
        """Return a term as a wish: "to sleep", "a drink"."""
        return f"to {term}" if self.is_verb(term) else self.indefinite(term)

    def purpose(self, term: str) -> str:
        """Return a term as a purpose: "to win", "for fun"."""
        return f"to {term}" if self.is_verb(term) else f"for {self.indefinite(term)}"

    def word(self, relation: str, term: str) -> str:
        """Return an object in the form that a relation's phrase requires.

        Args:
            relation: ConceptNet's name of the relation, or of its negation.
            term: the object.
        """
        if relation == "HasProperty":
            return term if term in STEADY else f"often {term}"
        form = _FORMS.get(relation.removeprefix("Not"))
        return term if form is None else form(self, term)

    def ability(self, term: str) -> str:
        """Return a term as an ability: "fly", "climb trees"."""
        verb, _, rest = term.partition(" ")
        return f"{verb} {noun_plural(rest)}" if rest in PLURAL_OBJECTS else term

    def use(self, term: str) -> str:
        """Return a term as a use: "cutting", "washing dishes", "keeping warm"."""
        verb, _, rest = term.partition(" ")
        return f"{gerund(verb)} {noun_plural(rest)}" if rest in PLURAL_OBJECTS else gerund(term)

    def has(self, term: str) -> str:
        """Return a term as a part: "a handle", "feathers"."""
        return noun_plural(term) if term in PLURAL_PARTS else self.parts(term)


_FORMS: Mapping[str, Callable[[PropertyForms, str], str]] = {
    "AtLocation": PropertyForms.place,
    "CapableOf": PropertyForms.ability,
    "Causes": PropertyForms.activity,
    "CausesDesire": PropertyForms.wish,
    "CreatedBy": PropertyForms.activity,
    "DefinedAs": PropertyForms.indefinite,
    "Desires": PropertyForms.wish,
    "HasA": PropertyForms.has,
    "HasFirstSubevent": PropertyForms.activity,
    "HasLastSubevent": PropertyForms.activity,
    "HasPrerequisite": PropertyForms.activity,
    "HasSubevent": PropertyForms.activity,
    "LocatedNear": PropertyForms.with_determiner,
    "MadeOf": PropertyForms.material,
    "MotivatedByGoal": PropertyForms.purpose,
    "PartOf": PropertyForms.with_determiner,
    "ReceivesAction": lambda _, term: past_participle(term),
    "UsedFor": PropertyForms.use,
}
"""Relation -> the form of its object; for other relations the object is unchanged."""


class PropertyLayout:
    """The texts of some questions.

    Attributes:
        asking: distinct questions with their golds; ``first`` comes first in the question.
        question: (lines of ``asking``,) index into `questions`.
    """

    def __init__(
        self,
        conceptnet: ConceptNet,
        wordnet: WordNet,
        evidence: Evidence,
        asking: PropertyPairs,
        worded: Sequence[str],
        negate: bool,
    ) -> None:
        """Prepare the texts.

        Args:
            conceptnet: the source of the terms.
            wordnet: the source of how nouns are used.
            evidence: the concepts and properties that ``asking`` refers to.
            asking: distinct lines.
            worded: all relations with phrases; their order determines keys of questions.
            negate: whether the second property is one that the gold lacks.
        """
        self.conceptnet, self.evidence, self.asking = conceptnet, evidence, asking
        self._negate, self._worded = negate, worded
        pairs = asking.first * evidence.relation.size + asking.second
        self._pairs, self.question = np.unique(pairs, return_inverse=True)
        self._texts = single_chunk(conceptnet.concepts["text"])
        shown = np.concatenate([evidence.object[self._used], evidence.concept])
        self._forms = PropertyForms(wordnet, self._texts.take(pa.array(shown)).to_pylist())

    @cached_property
    def _used(self) -> Ints:
        return np.unique(np.concatenate([self.asking.first, self.asking.second]))

    def _names(self, codes: Ints) -> pa.Array:
        return pa.array(self.evidence.relation_names).take(pa.array(codes))

    @property
    def _sign(self) -> int:
        """The offset from the relation of a second property to the one that is true of the gold."""
        return 1 if self._negate else 0

    @property
    def relation(self) -> pa.Array:
        """For each line, the relations of the gold to both objects: "AtLocation+UsedFor"."""
        first = self._names(self.evidence.relation[self.asking.first]).to_pylist()
        second = self._names(self.evidence.relation[self.asking.second] ^ self._sign).to_pylist()
        return pa.array([f"{a}+{b}" for a, b in zip(first, second, strict=True)])

    @property
    def question_names(self) -> list[str]:
        """The name of each question: "AtLocation kitchen + NotIsA tool"."""
        evidence = self.evidence
        first, second = np.divmod(self._pairs, evidence.relation.size)
        signs = (0, self._sign)
        parts = []
        for which, sign in zip((first, second), signs, strict=True):
            names = self._names(evidence.relation[which] ^ sign).to_pylist()
            texts = self._texts.take(pa.array(evidence.object[which])).to_pylist()
            parts.append([f"{name} {text}" for name, text in zip(names, texts, strict=True)])
        return [" + ".join(pair) for pair in zip(*parts, strict=True)]

    @property
    def questions(self) -> Questions:
        """The distinct questions."""
        evidence = self.evidence
        first, second = np.divmod(self._pairs, evidence.relation.size)
        objects = self._worded_objects()
        codes = evidence.relation[first], evidence.relation[second] ^ self._sign
        names = [self._names(code) for code in codes]
        texts = [objects.take(pa.array(which)) for which in (first, second)]
        columns = [column.to_pylist() for column in (names[0], texts[0], names[1], texts[1])]
        properties = [[[a, b], [c, d]] for a, b, c, d in zip(*columns, strict=True)]
        fields = {
            "properties": pa.array(properties, pa.list_(pa.list_(pa.string()))),
            "relation_1": names[0],
            "object_1": texts[0],
            "relation_2": names[1],
            "object_2": texts[1],
        }
        identity = self._identity()
        key = identity[first] * (2 * len(self._worded) * len(self.conceptnet)) + identity[second]
        return Questions.from_columns(key, fields)

    def _identity(self) -> Ints:
        """A number for each property that does not depend on options."""
        order = np.array([self._worded.index(name) for name in self.evidence.relation_names[::2]])
        relation = self.evidence.relation
        code = 2 * order[relation // 2] + relation % 2
        return np.asarray(code * len(self.conceptnet) + self.evidence.object)

    def _worded_objects(self) -> pa.Array:
        """The object of each property, in the form that its phrase requires; empty if unused."""
        names, evidence = self.evidence.relation_names, self.evidence
        worded = [""] * evidence.relation.size
        texts = self._texts.take(pa.array(evidence.object[self._used])).to_pylist()
        for which, text in zip(self._used.tolist(), texts, strict=True):
            worded[which] = self._forms.word(names[evidence.relation[which]], text)
        return pa.array(worded, pa.string())

    @property
    def facts(self) -> Facts:
        """For each line, the edges that make its gold true.

        A property that the gold lacks is included if an edge denies it.
        """
        evidence, (gold, first, second) = self.evidence, self.asking
        shown = evidence.denied[gold, second] if self._negate else np.ones_like(gold, np.bool_)
        triples: list[list[tuple[int, int, int]]] = []
        for one, p, q, also in zip(
            gold.tolist(), first.tolist(), second.tolist(), shown.tolist(), strict=True
        ):
            made = self._edges(one, p)
            if also and self._negate:
                relation = int(evidence.relation[q]) ^ 1
                made.append((int(evidence.concept[one]), relation, int(evidence.object[q])))
            elif also:
                made += self._edges(one, q)
            triples.append(list(dict.fromkeys(made)))
        subject, related, target = (
            np.array(column, dtype=np.int64)
            for column in zip(*(edge for fact in triples for edge in fact), strict=True)
        )
        size = np.array([len(fact) for fact in triples], dtype=np.int64)
        return Facts.from_codes(subject, related, target, self._texts, self._relations, size)

    def _edges(self, gold: int, which: int) -> list[tuple[int, int, int]]:
        """Return the edges by which a concept has a property: its own, or its kind's plus IsA."""
        evidence = self.evidence
        concept, source = int(evidence.concept[gold]), self._sources[gold, which]
        own = source, int(evidence.relation[which]), int(evidence.object[which])
        if source == concept:
            return [own]
        return [(concept, self._relations.index("IsA"), source), own]

    @property
    def _relations(self) -> tuple[str, ...]:
        """Return the names of relations in triples, always including IsA."""
        return (*self.evidence.relation_names, "IsA")

    @cached_property
    def _sources(self) -> dict[tuple[int, int], int]:
        sure = self.evidence.sure
        keys = zip(sure.concept.tolist(), sure.property.tolist(), strict=True)
        return dict(zip(keys, sure.source.tolist(), strict=True))

    @property
    def choices(self) -> Nodes:
        """Return concepts as choices; nodes are ConceptNet ids."""
        events = self.evidence.concept[self._events()]
        shown_as_event = frozenset(events.tolist())

        def fields(nodes: Ints, wanted: Collection[str]) -> Mapping[str, Sequence[Any]]:
            texts = self._texts.take(pa.array(nodes)).to_pylist()
            concept = [
                gerund(text) if node in shown_as_event else text
                for node, text in zip(nodes.tolist(), texts, strict=True)
            ]
            return {"concept": concept} if "concept" in wanted else {}

        def frequency(nodes: Ints) -> Floats:
            return zipf_frequencies(self._texts.take(pa.array(nodes)).to_pylist())

        return Nodes(self._texts, fields, np.log1p(kinds_below(self.conceptnet)), frequency)

    def _events(self) -> Bools:
        """Mark the concepts that have only statements about events."""
        evidence = self.evidence
        about = np.isin(np.array(evidence.relation_names[::2]), EVENTS)
        event = about[evidence.relation[evidence.sure.property] // 2]
        marked, other = np.zeros((2, evidence.concept.size), dtype=np.bool_)
        marked[evidence.sure.concept[event]] = True
        other[evidence.sure.concept[~event]] = True
        texts = self._texts.take(pa.array(evidence.concept)).to_pylist()
        verbs = np.array([self._forms.is_verb(text) for text in texts], np.bool_)
        return np.asarray(verbs & marked & ~other)
