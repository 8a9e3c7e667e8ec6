"""How questions about two properties are laid out: texts, choices, and what makes golds true."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from builders.engine.plan import Facts, Nodes, Questions
from builders.english.inflection import gerund, past_participle
from builders.english.nouns import Nouns
from builders.properties.contrast import EVENTS
from builders.properties.facts import Evidence
from builders.properties.rows import PropertyPairs
from kb_cache.conceptnet.types import ConceptNet
from kb_cache.frequency import zipf_frequencies
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.columns import single_chunk

FREQUENCY_STEP, LONG, GENERAL = 0.5, 7, 10
"""What tells concepts apart at a glance: steps of frequency (Zipf), from how many characters on
they are long, and from how many kinds of them (IsA) on they are general."""


def look_classes(conceptnet: ConceptNet, concepts: Ints) -> Ints:
    """Return a class for each concept: those of a class look alike to who knows nothing else."""
    texts = single_chunk(conceptnet.concepts["text"]).take(pa.array(concepts)).to_pylist()
    steps = np.floor(zipf_frequencies(texts) / FREQUENCY_STEP).astype(np.int64)
    long = np.array([len(text) >= LONG for text in texts], dtype=np.int64)
    general = (kinds_below(conceptnet)[concepts] >= GENERAL).astype(np.int64)
    look = np.unique(4 * steps + 2 * long + general, return_inverse=True)[1]
    return np.asarray(look, dtype=np.int64)


def kinds_below(conceptnet: ConceptNet) -> Ints:
    """How many things are said to be a kind of each concept."""
    if "IsA" not in conceptnet.relation_names:
        return np.zeros(len(conceptnet), dtype=np.int64)
    below: Ints = conceptnet.reverse("IsA").degrees
    return below


class PropertyForms(Nouns):
    """Puts the objects of properties into the forms that their relations' phrases take."""

    def activity(self, term: str) -> str:
        """Return what one does, or a thing: "lying down", "an accident"."""
        return gerund(term) if self.is_verb(term) else self.indefinite(term)

    def wish(self, term: str) -> str:
        """Return what one wants: "to sleep", "a drink"."""
        return f"to {term}" if self.is_verb(term) else self.indefinite(term)

    def purpose(self, term: str) -> str:
        """Return why one does something: "to win", "for fun"."""
        return f"to {term}" if self.is_verb(term) else f"for {self.indefinite(term)}"

    def word(self, relation: str, term: str) -> str:
        """Return an object in the form that a relation's phrase takes.

        Args:
            relation: ConceptNet's name of the relation, or of its negation.
            term: the object.
        """
        form = _FORMS.get(relation.removeprefix("Not"))
        return term if form is None else form(self, term)


_FORMS: Mapping[str, Callable[[PropertyForms, str], str]] = {
    "AtLocation": PropertyForms.place,
    "Causes": PropertyForms.activity,
    "CausesDesire": PropertyForms.wish,
    "CreatedBy": PropertyForms.activity,
    "DefinedAs": PropertyForms.indefinite,
    "Desires": PropertyForms.wish,
    "HasA": PropertyForms.parts,
    "HasFirstSubevent": PropertyForms.activity,
    "HasLastSubevent": PropertyForms.activity,
    "HasPrerequisite": PropertyForms.activity,
    "HasSubevent": PropertyForms.activity,
    "LocatedNear": PropertyForms.with_determiner,
    "MadeOf": PropertyForms.material,
    "MotivatedByGoal": PropertyForms.purpose,
    "PartOf": PropertyForms.with_determiner,
    "ReceivesAction": lambda _, term: past_participle(term),
    "UsedFor": lambda _, term: gerund(term),
}
"""Relation -> the form of its object; of those that are not here it stays as it is."""


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
            conceptnet: where terms are from.
            wordnet: tells how nouns are used.
            evidence: what ``asking`` points to.
            asking: distinct lines.
            worded: all relations that there are phrases for: their order makes keys of questions.
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
        """What turns the relation of a second property into the one that is true of the gold."""
        return 1 if self._negate else 0

    @property
    def relation(self) -> pa.Array:
        """For each line, what holds between the gold and both objects: "AtLocation+UsedFor"."""
        first = self._names(self.evidence.relation[self.asking.first]).to_pylist()
        second = self._names(self.evidence.relation[self.asking.second] ^ self._sign).to_pylist()
        return pa.array([f"{a}+{b}" for a, b in zip(first, second, strict=True)])

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
        """A number for each property that depends on no option."""
        order = np.array([self._worded.index(name) for name in self.evidence.relation_names[::2]])
        relation = self.evidence.relation
        code = 2 * order[relation // 2] + relation % 2
        return np.asarray(code * len(self.conceptnet) + self.evidence.object)

    def _worded_objects(self) -> pa.Array:
        """The object of each property, in the form that its phrase takes; empty if not in use."""
        names, evidence = self.evidence.relation_names, self.evidence
        worded = [""] * evidence.relation.size
        texts = self._texts.take(pa.array(evidence.object[self._used])).to_pylist()
        for which, text in zip(self._used.tolist(), texts, strict=True):
            worded[which] = self._forms.word(names[evidence.relation[which]], text)
        return pa.array(worded, pa.string())

    @property
    def facts(self) -> Facts:
        """For each line, the edges that make its gold true.

        A property that the gold lacks is among them where an edge denies it.
        """
        evidence, (gold, first, second) = self.evidence, self.asking
        shown = evidence.denied[gold, second] if self._negate else np.ones_like(gold, np.bool_)
        size = 1 + shown
        indptr = np.concatenate([[0], np.cumsum(size)])
        which = np.repeat(first, size)
        which[indptr[1:][shown] - 1] = second[shown]
        relation = evidence.relation[which].astype(np.int64)
        relation[indptr[1:][shown] - 1] ^= self._sign
        subject = evidence.concept[np.repeat(gold, size)]
        return Facts.from_codes(
            subject,
            relation,
            evidence.object[which],
            self._texts,
            evidence.relation_names,
            size,
        )

    @property
    def choices(self) -> Nodes:
        """How concepts appear as choices; nodes are ids in ConceptNet."""
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
        """Mark concepts that are verbs, and of which is said what is said of events.

        What is a kind of something is a thing, whatever else it may be: a drink.
        """
        evidence = self.evidence
        about = np.isin(np.array(evidence.relation_names[::2]), EVENTS)
        event = about[evidence.relation[evidence.sure.property] // 2]
        size = evidence.concept.size
        share = np.bincount(evidence.sure.concept, event, size) / np.maximum(
            np.bincount(evidence.sure.concept, minlength=size), 1
        )
        texts = self._texts.take(pa.array(evidence.concept)).to_pylist()
        verbs = np.array([self._forms.is_verb(text) for text in texts], np.bool_)
        of_kind = np.array(evidence.relation_names)[evidence.relation] == "IsA"
        thing = np.zeros(size, dtype=np.bool_)
        thing[evidence.sure.concept[of_kind[evidence.sure.property]]] = True
        return np.asarray(verbs & (share > 0.5) & ~thing)
