"""Word knowledge of the NLI probes: kinds of nouns and verbs, fixed phrases, opposites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import pyarrow.compute as pc

from builders.function_words.nli.clauses import fixed_words
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.columns import mask, single_chunk, to_numpy
from kbprobe.plugins import lemminflect

LEAST_FIT = 0.5
"""Minimum fit of two opposite adjectives (:mod:`builders.antonyms.pairs`), which ensures that both
are mostly used in their opposite senses."""

LEAST_ZIPF = 3.3
"""Minimum frequency of both."""


@dataclass(frozen=True, eq=False)
class WordKinds:
    """Word knowledge from WordNet."""

    wordnet: WordNet

    @cached_property
    def _first_kinds(self) -> Mapping[str, Mapping[str, str]]:
        """Part of speech (`POS`) -> lower-case lemma -> lexicographer file of its first sense."""
        senses, synsets = self.wordnet.senses, self.wordnet.synsets
        first = mask(pc.equal(senses["number"], 1))
        synset = to_numpy(senses["synset"])[first]
        lemma = pc.utf8_lower(self.wordnet.lemma_texts()).filter(first).to_pylist()
        kinds = single_chunk(synsets["lexname"]).take(synset).to_pylist()
        parts = self.wordnet.pos_codes[synset].tolist()
        found: dict[str, dict[str, str]] = {part: {} for part in POS}
        for word, part, kind in zip(lemma, parts, kinds, strict=True):
            found[POS[part]].setdefault(word, kind.partition(".")[2])  # a kind may be unknown
        return found

    def noun_kind(self, word: str) -> str:
        """Return the kind of a noun in its commonest sense ("artifact"); "" if unknown."""
        nouns = self._first_kinds["n"]
        lower = word.lower()
        return nouns.get(lower) or nouns.get(singular(lower), "")

    def verb_kind(self, lemma: str) -> str:
        """Return the kind of a verb in its commonest sense ("motion"); "" if unknown."""
        return self._first_kinds["v"].get(lemma, "")

    def governs(self, lemma: str, preposition: str) -> bool:
        """Return whether verb and preposition form a verb in WordNet ("look after")."""
        return f"{lemma} {preposition}" in self._first_kinds["v"]

    def is_compound(self, lower: Sequence[str], at: int) -> bool:
        """Return whether an adjective is part of a compound or a fixed expression.

        >>> from kb_cache.wordnet.load import load_wordnet
        >>> words = lexicon(load_wordnet("3.0"))
        >>> words.is_compound("she left high school".split(), 2)
        True
        """
        if " ".join(lower[at : at + 2]) in self._first_kinds["n"]:
            return True
        spans = ((1, 1), (1, 2), (0, 2), (0, 3), (2, 1), (2, 2))
        around = (" ".join(lower[max(at - one, 0) : at + two]) for one, two in spans)
        return not self.fixed_phrases.isdisjoint(around)

    @cached_property
    def fixed_phrases(self) -> frozenset[str]:
        """Multi-word adverbs and adjectives ("in fact", "at home"), and listed phrases."""
        adverbs = {word for pos in "asr" for word in self._first_kinds[pos] if " " in word}
        return frozenset(adverbs) | fixed_words("fixed_phrases")

    @cached_property
    def opposites(self) -> Mapping[str, str]:
        """Adjective -> its antonym in WordNet with the best fit."""
        from builders.antonyms.options import AntonymOptions
        from builders.antonyms.pairs import find_pairs
        from builders.engine.drops import DropLog

        options = AntonymOptions(
            pos=("adjective",),
            indirect=False,
            look_alikes=True,
            min_zipf=LEAST_ZIPF,
            judged=False,  # Whether they go with "really" does not matter here.
        )
        pairs = [
            pair
            for pair in find_pairs(self.wordnet, None, options, DropLog())
            if pair.antonym and pair.relations == ("antonym",) and pair.fit >= LEAST_FIT
        ]
        left_out = fixed_words("opposites_left_out")
        found: dict[str, str] = {}
        for pair in sorted(pairs, key=lambda pair: (-pair.fit, pair.words)):
            one, other = pair.words
            if left_out.isdisjoint(pair.words) and not pair.doubts:
                found.setdefault(one, other)
                found.setdefault(other, one)
        return found


@lru_cache(maxsize=1 << 15)
def singular(noun: str) -> str:
    """Return the singular of a noun, or the noun itself if none is known.

    >>> singular("rooms"), singular("room")
    ('room', 'room')
    """
    found = lemminflect().getAllLemmas(noun, upos="NOUN").get("NOUN", ())
    return str(found[0]) if found else noun


@lru_cache(maxsize=2)
def lexicon(wordnet: WordNet) -> WordKinds:
    """Return the lexicon of a WordNet, made once."""
    return WordKinds(wordnet)
