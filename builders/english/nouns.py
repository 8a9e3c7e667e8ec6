"""Nouns in the forms that phrases take: "a kitchen", "feathers", "water", "at school".

No library states which English nouns take no article. This is decided by a noun's kind in WordNet,
by how much rarer its plural is than its singular, and otherwise by word lists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.english.inflection import is_plural, noun_plural, with_article
from builders.english.word_lists import word_list
from kb_cache.frequency import zipf_frequencies
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.columns import codes, to_numpy

MASS_KINDS = (
    "noun.attribute",
    "noun.feeling",
    "noun.phenomenon",
    "noun.process",
    "noun.state",
    "noun.substance",
)
"""Kinds of nouns (WordNet's lexicographer files) that mostly take no article."""

COUNTED_KINDS = ("noun.animal", "noun.person")
"""Kinds of nouns that take an article, however rare their plural is: sheep, alligator."""

STUFF = ("noun.food", "noun.substance")
THINGS = ("noun.artifact", "noun.body", "noun.object", "noun.plant")
"""Kinds that decide if the plural does not occur: substances are mass nouns, things are
countable."""

MASS_GAP, OTHER_MASS_GAP = 0.8, 1.5
"""Zipf difference between singular and plural above which a noun is a mass noun, for nouns of a
kind in :data:`MASS_KINDS` and for other nouns."""

USUAL_PLURAL_GAP = 0.35
"""Zipf difference up to which parts are named in the plural: feathers, cells."""


class Nouns:
    """Countability and plurals of some nouns."""

    def __init__(self, wordnet: WordNet, terms: Sequence[str]) -> None:
        """Look up what is needed to put these terms into phrases.

        Args:
            wordnet: the source of each term's kind, and of whether it is mostly a noun or a verb.
            terms: lower-case words and compounds.
        """
        distinct = sorted(set(terms))
        kinds, self._verbs = _kinds(wordnet, distinct)
        self._kind = dict(zip(distinct, kinds, strict=True))
        self._spelled: dict[str, list[str]] = defaultdict(list)
        for term in distinct:
            self._spelled[_entry(term)].append(term)
        # Plurals take long to form, and many terms are never put into a phrase.
        self._use = cache(self._use_of)

    def _use_of(self, term: str) -> tuple[bool, str]:
        """Return whether one of the terms is a mass noun, and its plural where that is usual."""
        kind, plural = self._kind[term], noun_plural(term)
        of_term, of_plural = zipf_frequencies([term, plural]).tolist()
        gap = of_term - of_plural
        if kind in COUNTED_KINDS:
            mass = False
        elif kind == "noun.substance" or plural == term:
            # lemminflect has no plural of most mass nouns: "happiness".
            mass = True
        elif of_plural == 0 and kind in (*STUFF, *THINGS):
            mass = kind in STUFF
        else:
            mass = gap >= (MASS_GAP if kind in MASS_KINDS else OTHER_MASS_GAP)
        if mass and _entry(term) not in word_list("count_nouns"):
            return True, ""
        return False, plural if gap <= USUAL_PLURAL_GAP and plural != term else ""

    def _usual_plural(self, term: str) -> str:
        return self._use(term)[1] if term in self._kind else ""

    def is_verb(self, term: str) -> bool:
        """Whether a term is used as a verb more often than as a noun."""
        return term in self._verbs

    def is_counted(self, term: str) -> bool:
        """Whether a noun takes *a* or *an*: not a mass noun, and not a plural."""
        entry = _entry(term)
        mass = entry in word_list("mass_nouns") or any(
            self._use(spelling)[0] for spelling in self._spelled.get(entry, ())
        )
        return not mass and not is_plural(term)

    def indefinite(self, term: str) -> str:
        """Return a noun with *a* or *an* if it is counted: "a kitchen", "water", "scissors"."""
        return with_article(term) if self.is_counted(term) else term

    def with_determiner(self, term: str) -> str:
        """Return a noun with its usual article: "a kitchen", "water", "the sun"."""
        return (
            f"the {term}" if _entry(term) in word_list("definite_nouns") else self.indefinite(term)
        )

    def parts(self, term: str) -> str:
        """Return a term as a part of something: "a handle", "feathers", "water"."""
        return self._usual_plural(term) or self.indefinite(term)

    def material(self, term: str) -> str:
        """Return a term as a material: "wood", "eggs"."""
        return self._usual_plural(term) or term

    def place(self, term: str) -> str:
        """Return a term as a place, with preposition and article: "on a table", "at school"."""
        entry, last = _entry(term), term.rsplit(" ", 1)[-1]
        bare = entry in word_list("bare_places")
        noun = term if bare else self.with_determiner(term)
        for preposition in ("on", "at"):
            places = word_list(f"places_{preposition}")
            if entry in places or (" " in term and last in places):
                return f"{preposition} {noun}"
        return f"in {noun}"


def _entry(term: str) -> str:
    """Return a term as spelled in the word lists."""
    return term.replace(" ", "-")


def _kinds(wordnet: WordNet, terms: Sequence[str]) -> tuple[list[str], frozenset[str]]:
    """Return the kind of each term's first sense as a noun ("noun.food"), and which are verbs.

    The kind is empty for terms that are not nouns. A term is a verb if it is used as a verb more
    often than as a noun in WordNet's tagged texts.
    """
    synset = wordnet.sense_synset
    pos = wordnet.pos_codes[synset]
    lemmas = pc.utf8_lower(wordnet.lemma_texts())
    at = pc.index_in(lemmas, value_set=pa.array(terms, pa.string()))
    term = to_numpy(pc.fill_null(at, -1)).astype(np.int64)
    stored, names = codes(wordnet.synsets["lexname"])
    noun, verb = (np.flatnonzero((term >= 0) & (pos == POS.index(p))) for p in "nv")
    kinds = [""] * len(terms)
    first = noun[to_numpy(wordnet.senses["number"])[noun] == 1]
    for row in first.tolist():
        kinds[term[row]] = names[stored[synset[row]]]
    count = to_numpy(wordnet.senses["count"])
    uses = [np.bincount(term[rows], count[rows] + 0.5, len(terms)) for rows in (noun, verb)]
    return kinds, frozenset(terms[i] for i in np.flatnonzero(uses[1] > uses[0]).tolist())
