"""WordNet's nouns as a taxonomy of single words, with ConceptNet's IsA if requested.

Readers of a taxonomy question see words, so everything here is about words. What may be *asserted*
is defined narrowly (by the senses that people use, up a bounded path), and what may be *denied*
strictly (no sense of one word has any sense of the other above it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.english.inflection import noun_plural
from builders.english.screen import RUDE_DOMAINS, in_usage_domains, offensive_words
from builders.english.word_lists import word_groups
from builders.lexicons import WordNetFirst
from kb_cache.frequency import zipf_frequencies
from kb_cache.graph import Graph
from kbprobe.arrays import Bools, Floats, Ints, sorted_unique
from kbprobe.columns import mask, positions, single_chunk, to_numpy
from kbprobe.errors import UsageError

MIN_LETTERS = 3
MOST_BELOW, KNOWN = 5, 1.5
"""A sense weighs as much as its count in the tagged texts (half of it if another word leads its
synset) and, if the word leads the synset, one more for that and for each hyponym, up to so many:
these show what a word that the texts lack is used for (a skunk is an animal before it is a rotter).
Where a word has several senses, one of a person or of nothing tangible counts only if it weighs at
least KNOWN: WordNet has a person for nearly every verb ("router").
"""

UNSURE = 0.6
"""What the shares of a word's senses count for if the tagged texts have none of them: such a word
is what all of its senses are."""

NAME_GAP = 2.0
"""A noun whose plural is rarer than its singular by so much (Zipf) is mostly a name ("dobson")."""

WITHOUT_PLURAL = (
    *("noun.act", "noun.attribute", "noun.cognition", "noun.feeling", "noun.food"),
    *("noun.phenomenon", "noun.process", "noun.state", "noun.substance"),
)
"""Kinds of nouns for which a rare plural means nothing."""

MAIN_SHARE = 0.5
"""Minimum count of a sense, relative to the first, in which a word may also be an answer."""

NOUN_SHARE = 0.5
"""Minimum share of uses as a noun, in WordNet's tagged texts, for a word to count as a noun."""

UNUSUAL = (*RUDE_DOMAINS, "archaism.n.01", "slang.n.02", "trade_name.n.01", "trademark.n.02")
"""Usage domains of senses not asked about: offensive, archaic, slang, trade names."""

DERIVED = ("noun.animal", "noun.food", "noun.plant", "noun.substance")
"""Pairs of kinds of senses: if a word has both, the later sense is derived from the earlier one."""

_THINGS = tuple(
    f"noun.{name}"
    for name in ("animal", "artifact", "body", "food", "object", "plant", "substance")
)


class NounSenses(NamedTuple):
    """The noun senses of the words: parallel arrays, sorted by word, then by number.

    ``tagged`` is the count in the tagged texts, ``share`` the estimated share of the word's uses;
    ``main`` marks senses in which a word may be an answer, ``tangible`` those of people and things.
    """

    word: Ints
    synset: Ints
    number: Ints
    tagged: Ints
    share: Floats
    main: Bools
    tangible: Bools


@dataclass(frozen=True, eq=False)
class Taxonomy(WordNetFirst):
    """A knowledge base of words: a WordNet, and optionally a ConceptNet.

    A word's id is its index among all single lower-case nouns of that WordNet in alphabetical
    order, so that it does not depend on options.
    """

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def words(self) -> pa.Array:
        """All words, in alphabetical order."""
        lemmas = single_chunk(self.wordnet.senses["lemma"])
        noun = self.wordnet.pos_codes[self.wordnet.sense_synset] == 0
        shaped = pc.match_substring_regex(lemmas, f"^[a-z]{{{MIN_LETTERS},}}$")
        found = pc.unique(lemmas.filter(pc.and_(shaped, pa.array(noun))))
        return found.take(pc.array_sort_indices(found))

    @cached_property
    def _word(self) -> Ints:
        """The word of every sense of WordNet, of any part of speech; -1 if it is not in `words`."""
        return self.find(single_chunk(self.wordnet.senses["lemma"]))

    def find(self, texts: pa.Array) -> Ints:
        """Return the words' ids, -1 for texts that are not in `words`."""
        return positions(self.words, texts)

    def ids(self, texts: Sequence[str], option: str) -> Ints:
        """Return the ids of words that an option names.

        Raises:
            UsageError: one is not a word of the taxonomy.
        """
        found = self.find(pa.array(list(texts), pa.string()))
        for text in (text for text, at in zip(texts, found, strict=True) if at < 0):
            raise UsageError(f"{option}: {text!r} is not a single lower-case noun of {self.name}")
        return found

    @cached_property
    def zipf(self) -> Floats:
        """Frequency of every word on the Zipf scale."""
        return zipf_frequencies(self.words.to_pylist())

    @cached_property
    def senses(self) -> NounSenses:
        """The noun senses of all words."""
        synset, number, count = (
            to_numpy(self.wordnet.senses[name]).astype(np.int64)
            for name in ("synset", "number", "count")
        )
        rows = np.flatnonzero((self._word >= 0) & (self.wordnet.pos_codes[synset] == 0))
        rows = rows[np.lexsort((number[rows], self._word[rows]))]
        word, synset, number, count = self._word[rows], synset[rows], number[rows], count[rows]
        usual = ~in_usage_domains(self.wordnet, UNUSUAL)[synset]
        leads = self._word[self.wordnet.sense_start[synset]] == word
        below = np.minimum(self._below[synset], MOST_BELOW)
        weight = np.where(leads, count + (1 + below) / number, count / 2)
        weight[self._second_thoughts(word, synset)] = 0
        total = np.bincount(word, weight, minlength=len(self))[word]
        most = np.zeros(len(self), dtype=np.int64)
        np.maximum.at(most, word, count)
        only = np.bincount(word, minlength=len(self))[word] == 1
        person = self.wordnet.in_files("noun.person")[synset]
        things = self.wordnet.in_files(*_THINGS)[synset]
        known = only | things | (weight >= KNOWN)
        share = np.where(usual & known, weight / np.where(total > 0, total, 1), 0.0)
        share[~only & (most[word] == 0)] *= UNSURE
        main = usual & ((number == 1) | ((count > 0) & (count >= MAIN_SHARE * most[word])))
        return NounSenses(word, synset, number, count, share, main, things | person)

    def _second_thoughts(self, word: Ints, synset: Ints) -> Bools:
        """Mark derived senses of a word: the tree of a fruit, the wood of a tree.

        Dictionaries list the plant first, readers think of the fruit.
        """
        rank = np.full(len(self.wordnet), len(DERIVED), dtype=np.int64)
        for place, name in enumerate(DERIVED):
            rank[self.wordnet.in_files(name)] = place
        own = rank[synset]
        first = np.full(len(self), len(DERIVED), dtype=np.int64)
        np.minimum.at(first, word, own)
        return np.asarray((own < len(DERIVED)) & (own > first[word]))

    @cached_property
    def _below(self) -> Ints:
        """The number of every synset's hyponyms."""
        size = len(self.wordnet)
        return np.bincount(self.wordnet.hypernyms.walk(np.arange(size)).node, minlength=size)

    @cached_property
    def plain(self) -> Bools:
        """Mask of plain singular nouns, which are nouns in most uses."""
        synset = self.wordnet.sense_synset
        count = to_numpy(self.wordnet.senses["count"]).astype(np.float64)
        listed = self._word >= 0
        uses, noun_uses = (
            np.bincount(self._word[rows], count[rows], minlength=len(self))
            for rows in (listed, listed & (self.wordnet.pos_codes[synset] == 0))
        )
        other = np.bincount(
            self._word[listed & (self.wordnet.pos_codes[synset] != 0)], minlength=len(self)
        )
        plain = (noun_uses >= NOUN_SHARE * uses) & ((uses > 0) | (other == 0))
        plain &= (noun_uses > 0) | ~self._also_names
        singular = pc.replace_substring_regex(self.words, r"([^s])s$", r"\1")
        plural = pc.and_(pc.not_equal(singular, self.words), pc.is_in(singular, self.words))
        return np.asarray(plain & ~mask(plural))

    @cached_property
    def offensive(self) -> Bools:
        """Mask of words that are coarse or a slur in one of their senses."""
        synset = self.wordnet.sense_synset
        rude = (self._word >= 0) & in_usage_domains(self.wordnet, RUDE_DOMAINS)[synset]
        found = offensive_words(self.words)
        found[self._word[rude]] = True
        return found

    def counted_like_a_noun(self, words: Ints) -> Bools:
        """Return whether the plural of each word is common enough for a noun, or none is needed."""
        # A plural is no rarer than not at all.
        counted = self.zipf[words] < NAME_GAP
        counted[~counted] = self.plural_gap(words[~counted]) < NAME_GAP
        return np.asarray(counted)

    def plural_gap(self, words: Ints) -> Floats:
        """Return how much rarer (Zipf) each word's plural is; 0 for kinds that need none."""
        asked = words[~self._without_plural[words]]
        plurals = [noun_plural(text) for text in self.words.take(pa.array(asked)).to_pylist()]
        gap = np.zeros(words.size)
        gap[~self._without_plural[words]] = self.zipf[asked] - zipf_frequencies(plurals)
        return gap

    @cached_property
    def _without_plural(self) -> Bools:
        """Mask of words whose first sense is of a kind that needs no plural."""
        first = np.unique(self.senses.word, return_index=True)[1]
        kinds = self.wordnet.in_files(*WITHOUT_PLURAL)
        without = np.zeros(len(self), dtype=np.bool_)
        without[self.senses.word[first]] = kinds[self.senses.synset[first]]
        return without

    @cached_property
    def untagged(self) -> Bools:
        """Mask of words that are never nouns in WordNet's tagged texts."""
        counted = np.bincount(self.senses.word, self.senses.tagged, minlength=len(self))
        return np.asarray(counted == 0)

    @cached_property
    def _also_names(self) -> Bools:
        """Mask of words that are also part of a name ("Java"): frequencies ignore case."""
        lemmas = pc.unique(single_chunk(self.wordnet.senses["lemma"]))
        parts = pc.unique(pc.list_flatten(pc.split_pattern_regex(lemmas, "[ _-]")))
        names = parts.filter(pc.match_substring_regex(parts, "^[A-Z][a-z]+$"))
        return mask(pc.is_in(self.words, value_set=pc.utf8_lower(names)))

    @cached_property
    def trusted(self) -> Graph:
        """Synset to its hypernyms, without edges that readers do not accept."""
        wordnet = self.wordnet
        source, target = wordnet.edges("hypernym")
        names = single_chunk(wordnet.synsets["name"])
        misleading = word_groups("misleading_edges", "builders.taxonomy")
        low, high = (positions(names, end) for end in zip(*misleading, strict=True))
        kept = ~np.isin(source * len(wordnet) + target, low * len(wordnet) + high)
        return Graph.from_edges(len(wordnet), source[kept], target[kept])

    @cached_property
    def in_synset(self) -> Graph:
        """Synset to the words in it."""
        size = max(len(self.wordnet), len(self))
        return Graph.from_edges(size, self.senses.synset, self.senses.word)

    def above(self, words: Ints) -> tuple[Ints, Ints]:
        """Return what words may mean: parallel arrays of words and synsets, their own or above.

        Every sense counts, and so do instances of a class.
        """
        rows = np.flatnonzero(np.isin(self.senses.word, words))
        word, synset = self.senses.word[rows], self.senses.synset[rows]
        walk = self.wordnet.isa.walk(synset)
        return np.concatenate([word, word[walk.source]]), np.concatenate([synset, walk.node])

    def cannot_deny(self, words: Ints) -> Ints:
        """Return what words may be, so that it cannot be denied: keys ``word * len(self) + other``.

        The keys are sorted. They cover every word in a synset of theirs or above it, every word in
        the definition of such a synset, and everything that ConceptNet says about them at any
        weight.
        """
        size = len(self)
        owner, synset = self.above(words)
        position, other = self.in_synset.expand(synset)
        rows = np.flatnonzero(np.isin(self.senses.word, words))
        defined = self._defined_by(self.senses.word[rows], self.senses.synset[rows])
        start, end = self.stated(0.0)
        keys = [owner[position] * size + other, defined, start * size + end]
        return sorted_unique(np.concatenate(keys))

    def _defined_by(self, word: Ints, synset: Ints) -> Ints:
        """Return keys of words and the words in the definitions of their synsets."""
        glosses = single_chunk(self.wordnet.synsets["gloss"]).take(pa.array(synset))
        tokens = pc.split_pattern_regex(pc.utf8_lower(glosses), "[^a-z]+")
        other = self.find(tokens.values)
        owner = np.repeat(word, np.diff(to_numpy(tokens.offsets)))
        return np.asarray((owner * len(self) + other)[other >= 0])

    def stated(self, min_weight: float) -> tuple[Ints, Ints]:
        """Return ConceptNet's IsA edges of a minimum weight between words: starts and ends."""
        source = self.conceptnet
        if source is None or "IsA" not in source.relation_names:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        start, end, weight = source.edges("IsA")
        word = self.find(single_chunk(source.concepts["text"]))
        start, end = word[start], word[end]
        kept = (start >= 0) & (end >= 0) & (start != end) & (weight >= min_weight)
        return start[kept], end[kept]
