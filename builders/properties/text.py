"""Objects of properties in the form in which a phrase takes them: "cutting", "in a kitchen".

ConceptNet's terms are lemmas without articles: :mod:`builders.english` inflects them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow.compute as pc

from builders.english.inflection import gerund, past_participle
from builders.english.nouns import Nouns
from kb_cache.conceptnet.types import ConceptNet
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Ints
from kbprobe.columns import single_chunk, to_numpy

COMMON_SENSE = 0.1
"""A sense counts if it has at least this share of the uses of the word's commonest one."""


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


def senses_of(conceptnet: ConceptNet, wordnet: WordNet, every: bool = False) -> tuple[Ints, Ints]:
    """The nouns and verbs of WordNet that concepts may name: (concept, synset), parallel.

    Beside the first sense, those that are rare in WordNet's tagged texts are left out, unless
    ``every`` one is wanted.
    """
    synset = to_numpy(wordnet.senses["synset"]).astype(np.int64)
    count = to_numpy(wordnet.senses["count"])
    pos = wordnet.pos_codes[synset].astype(np.int64)
    lemmas = pc.utf8_lower(wordnet.lemma_texts())
    at = pc.index_in(lemmas, value_set=single_chunk(conceptnet.concepts["text"]))
    concept = to_numpy(pc.fill_null(at, -1)).astype(np.int64)
    rows = np.flatnonzero((concept >= 0) & (pos <= POS.index("v")))
    if every:
        return concept[rows], synset[rows]
    word = concept[rows] * 2 + pos[rows]
    most = np.zeros(2 * len(conceptnet), dtype=count.dtype)
    np.maximum.at(most, word, count[rows])
    first = to_numpy(wordnet.senses["number"])[rows] == 1
    rows = rows[first | (count[rows] >= COMMON_SENSE * most[word])]
    return concept[rows], synset[rows]
