"""Which questions a taxonomy gives rise to: two words, what both are, and what they are not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from builders.engine.draw.balanced import Candidates, first_of_each
from builders.engine.drops import DropLog
from builders.engine.whole_words import whole_words
from builders.taxonomy.options import LEVEL, TREES, TaxonomyOptions
from builders.taxonomy.pairs import Pairs, answers_of, pairs_of, trees_of
from builders.taxonomy.words import Taxonomy
from builders.wordnet.synsets import generality
from kb_cache.graph import Graph
from kbprobe.arrays import (
    Bools,
    Floats,
    Ints,
    contains,
    joined,
    lines_of,
    ragged_ranges,
    sorted_unique,
)
from kbprobe.format.setups import SPLITS
from kbprobe.rng import RandomGenerator

KIN_HOPS = 3
"""Answers are kin if a synset so many edges above both, or fewer, joins them."""

KIN_REACH = 12_000
"""A synset with more below it joins nothing: all things are kin as "objects"."""

OVERSAMPLING = 4
"""Pairs of words looked at for a gold, in multiples of its cap."""


class WordPairs(NamedTuple):
    """Questions before distractors: parallel arrays; ``x`` and ``y`` are rows of the pairs.

    Both pairs have the same answer, which is the gold. ``candidates`` may be distractors of the
    rows. In the family "paper" their group is 0 for what x alone is, 1 for what y alone is.
    """

    x: Ints
    y: Ints
    candidates: Candidates

    def take(self, keep: Bools) -> WordPairs:
        """Return the questions marked, with their candidates."""
        number = np.cumsum(keep) - 1
        some = self.candidates.take(keep[self.candidates.row])
        return WordPairs(self.x[keep], self.y[keep], some._replace(row=number[some.row]))


@dataclass(frozen=True, eq=False)
class AskableTaxonomy:
    """What the options leave of a taxonomy to ask about.

    Attributes:
        taxonomy, options: what it was made of.
        pairs: what the words asked about are; word and answer are of one split.
        split: of every word; -1 for words of none.
        tops: the synset that each answer names; -1 for other words.
        general: the logarithm of the number of hyponyms of every answer.
        undeniable: see `Taxonomy.cannot_deny`: of all words of the pairs.
    """

    taxonomy: Taxonomy
    options: TaxonomyOptions
    pairs: Pairs
    split: Ints
    tops: Ints
    general: Floats
    undeniable: Ints

    @classmethod
    def of(cls, taxonomy: Taxonomy, options: TaxonomyOptions) -> AskableTaxonomy:
        """Find the answers, what is below them, and the split of every word."""
        wordnet, size = taxonomy.wordnet, len(taxonomy)
        tree = trees_of(wordnet, list(TREES.values()))
        split_of_tree = np.full(len(TREES) + 1, -1, dtype=np.int64)
        for code, names in enumerate(options.trees):
            split_of_tree[[list(TREES).index(name) for name in names]] = code
        reach = generality(wordnet)
        asked = np.where(
            (split_of_tree[tree] >= 0) & (reach <= np.log(options.max_reach)), tree, -1
        )
        whole = taxonomy.plain
        if options.tokenizer:
            whole = whole & whole_words(taxonomy.words.to_pylist(), options.tokenizer)
        answers = whole & (taxonomy.zipf >= options.min_answer_zipf)
        answers[taxonomy.ids(options.stop_golds, "--stop-golds")] = False
        named = answers_of(taxonomy, answers, asked)
        pairs = pairs_of(
            taxonomy,
            whole & (taxonomy.zipf >= options.min_zipf) & taxonomy.counted_like_a_noun,
            named,
            max_hops=options.max_hops,
            min_weight=options.min_weight,
        )
        sound = (pairs.share >= options.min_share) & ~_names_answer(taxonomy, pairs)
        pairs = lines_of(pairs, sound)
        tops = np.full(size, -1, dtype=np.int64)
        synsets = np.flatnonzero(named >= 0)
        # Of several synsets that a word names, it stands for the most general.
        synsets = synsets[np.argsort(reach[synsets], kind="stable")]
        tops[named[synsets]] = synsets
        split_of_answer = np.where(tops >= 0, split_of_tree[asked[tops]], -1)
        split = _homes(pairs, split_of_answer, size)
        pairs = lines_of(pairs, split[pairs.word] == split[pairs.answer])
        words = sorted_unique(np.concatenate([pairs.word, pairs.answer]))
        general = np.where(tops >= 0, reach[tops], 0.0)
        return cls(taxonomy, options, pairs, split, tops, general, taxonomy.cannot_deny(words))

    def deniable(self, word: Ints, other: Ints) -> Bools:
        """Tell for parallel arrays of words whether it is false that one is the other."""
        return ~contains(self.undeniable, word * len(self.taxonomy) + other)

    @cached_property
    def kin(self) -> Graph:
        """Every answer to others at its level: near it in WordNet, about as general, not it.

        Neither is above or below the other, and neither is said to be the other.
        """
        wordnet, size = self.taxonomy.wordnet, len(self.taxonomy)
        answers = sorted_unique(self.pairs.answer)
        walk = wordnet.hypernyms.walk(self.tops[answers], KIN_HOPS)
        near = generality(wordnet)[walk.node] <= np.log(KIN_REACH)
        above = Graph.from_edges(
            max(size, len(wordnet)), answers[walk.source[near]], walk.node[near]
        )
        position, joint = above.expand(answers)
        at, other = above.reversed.expand(joint)
        one = answers[position[at]]
        keys = sorted_unique(one * size + other)
        one, other = keys // size, keys % size
        level = np.abs(self.general[one] - self.general[other]) <= np.log(self.options.level)
        kept = level & (one != other) & self.deniable(one, other) & self.deniable(other, one)
        return Graph.from_edges(size, one[kept], other[kept])

    @cached_property
    def _bounds(self) -> Ints:
        """Row bounds of each word's pairs."""
        return np.searchsorted(self.pairs.word, np.arange(len(self.taxonomy) + 1))

    def hops(self, words: Ints, answers: Ints) -> Ints:
        """Return for parallel arrays the edges from a word to an answer, 0 if it is none."""
        size, pairs = len(self.taxonomy), self.pairs
        key, wanted = pairs.word * size + pairs.answer, words * size + answers
        at = np.minimum(np.searchsorted(key, wanted), key.size - 1)
        return np.where(key[at] == wanted, pairs.hops[at], 0)

    def word_pairs(self, family: str, rng: RandomGenerator, dropped: DropLog) -> WordPairs:
        """Find pairs of words that share an answer, each with what may stand beside it."""
        x, y = self._coupled(rng)
        word = self.pairs.word
        apart = self.deniable(word[x], word[y]) & self.deniable(word[y], word[x])
        nearest = apart & self._nearest(x, y)
        x, y = x[nearest], y[nearest]
        found = self._kin_of(x, y) if family == LEVEL else self._of_one_alone(x, y)
        asked = WordPairs(x, y, found)
        rows = found.row
        if found.group is not None:
            rows = sorted_unique(rows * 2 + found.group) // 2
        asked = asked.take(
            dropped.keep(
                f"{family}: fewer than two distractors",
                np.bincount(rows, minlength=x.size) >= 2,
            )
        )
        return self._capped(asked, rng.child("caps"))

    def _kin_of(self, x: Ints, y: Ints) -> Candidates:
        """What is at the gold's level and neither word is."""
        row, node = self.kin.expand(self.pairs.answer[x])
        word = self.pairs.word
        kept = self.deniable(word[x[row]], node) & self.deniable(word[y[row]], node)
        return Candidates(row[kept], node[kept])

    def _of_one_alone(self, x: Ints, y: Ints) -> Candidates:
        """What one word is and the other is not: the paper's distractors."""
        pairs = self.pairs
        parts = []
        for side, (own, foreign) in enumerate(((x, y), (y, x))):
            start = self._bounds[pairs.word[own]]
            lengths = self._bounds[pairs.word[own] + 1] - start
            row = np.repeat(np.arange(own.size, dtype=np.int64), lengths)
            node = pairs.answer[ragged_ranges(start, lengths)]
            kept = self.deniable(pairs.word[foreign[row]], node)
            parts.append(Candidates(row[kept], node[kept], np.full(int(kept.sum()), side)))
        return joined(parts)

    def _nearest(self, x: Ints, y: Ints) -> Bools:
        """Mark pairs that are nothing more specific in common than their answer."""
        pairs, size = self.pairs, len(self.taxonomy)
        start = self._bounds[pairs.word[x]]
        lengths = self._bounds[pairs.word[x] + 1] - start
        row = np.repeat(np.arange(x.size, dtype=np.int64), lengths)
        other = pairs.answer[ragged_ranges(start, lengths)]
        closer = self.general[other] < self.general[pairs.answer[x[row]]]
        shared = contains(pairs.word * size + pairs.answer, pairs.word[y[row]] * size + other)
        found = np.ones(x.size, dtype=np.bool_)
        found[row[closer & shared]] = False
        return found

    def _capped(self, asked: WordPairs, rng: RandomGenerator) -> WordPairs:
        """Bound how often a word stands in each of the two places, and how often it is gold."""
        word, options = self.pairs.word, self.options
        for place, of, most in (
            ("x", word, options.cap_per_word),
            ("y", word, options.cap_per_word),
            ("x", self.pairs.answer, options.cap_per_gold),
        ):
            if most:
                identity = asked.x * word.size + asked.y
                chance = rng.child(place, most)
                asked = asked.take(first_of_each(of[getattr(asked, place)], most, chance, identity))
        return asked

    def _coupled(self, rng: RandomGenerator) -> tuple[Ints, Ints]:
        """Couple pairs that have one answer: each with as many others as any, in seeded order."""
        answer, cap = self.pairs.answer, self.options.cap_per_gold
        rows = np.lexsort((rng.bits(answer, self.pairs.word), answer))
        _, first, count = np.unique(answer[rows], return_index=True, return_counts=True)
        reach = count // 2
        if cap:
            reach = np.minimum(reach, -(-OVERSAMPLING * cap // count))
        # The word at place i of its n is coupled with those at i + 1, i + 2, ..., modulo n.
        steps = np.repeat(reach, count)
        at = np.repeat(np.arange(rows.size, dtype=np.int64), steps)
        step = ragged_ranges(np.ones_like(steps), steps)
        group = np.repeat(np.arange(count.size), count)[at]
        partner = first[group] + (at - first[group] + step) % count[group]
        # Half way round, couples come twice.
        twice = (2 * step == count[group]) & (at > partner)
        return rows[at[~twice]], rows[partner[~twice]]


def _names_answer(taxonomy: Taxonomy, pairs: Pairs) -> Bools:
    """Mark pairs whose word holds its answer: a houseboat and a boat."""
    words, answers = (
        taxonomy.words.take(pa.array(column)).to_pylist() for column in (pairs.word, pairs.answer)
    )
    held = (answer in word for word, answer in zip(words, answers, strict=True))
    return np.fromiter(held, dtype=np.bool_, count=len(words))


def _homes(pairs: Pairs, split_of_answer: Ints, size: int) -> Ints:
    """Return the split of every word: an answer's own, else where the word has most answers."""
    votes = np.zeros((size, len(SPLITS)), dtype=np.int64)
    np.add.at(votes, (pairs.word, split_of_answer[pairs.answer]), 1)
    home = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
    return np.where(split_of_answer >= 0, split_of_answer, home)
