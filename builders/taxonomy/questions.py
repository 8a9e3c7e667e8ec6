"""Which questions a taxonomy gives rise to: two words, what both are, and what one alone is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from builders.engine.draw.balanced import Candidates, first_of_each
from builders.engine.whole_words import whole_words
from builders.taxonomy.options import MATCHED, PAPER, TREES, TaxonomyOptions
from builders.taxonomy.pairs import Pairs, answers_of, pairs_of, trees_of
from builders.taxonomy.words import Taxonomy
from kb_cache.graph import Graph
from kbprobe.arrays import Bools, Floats, Ints, contains, ragged_ranges, sorted_unique
from kbprobe.format.setups import SPLITS
from kbprobe.rng import RandomGenerator

NEAR = 4
"""A parent is said to be near an answer if it has at most this many times more hyponyms."""


class WordPairs(NamedTuple):
    """Questions before distractors: parallel arrays; ``x`` and ``y`` are rows of the pairs.

    Both pairs have the same answer, which is the gold. ``candidates`` may be distractors of the
    rows; their group is 0 for what x alone is, 1 for what y alone is.
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
        tree: the tree of every word as an answer; -1 for other words.
        general: the logarithm of the number of hyponyms of every answer.
        undeniable: see `Taxonomy.cannot_deny`: of all words of the pairs.
        in_tree: sorted keys ``word * number of trees + tree``: where the words' senses are.
        under: sorted keys ``word * synsets + synset``: what is above them.
        parents: every answer to the synsets right above it that are near (see `NEAR`).
    """

    taxonomy: Taxonomy
    options: TaxonomyOptions
    pairs: Pairs
    split: Ints
    tree: Ints
    general: Floats
    undeniable: Ints
    in_tree: Ints
    under: Ints
    parents: Graph

    @classmethod
    def of(cls, taxonomy: Taxonomy, options: TaxonomyOptions) -> AskableTaxonomy:
        """Find the answers, what is below them, and the split of every word."""
        from builders.wordnet.synsets import generality

        wordnet, size = taxonomy.wordnet, len(taxonomy)
        tree = trees_of(wordnet, list(TREES.values()))
        split_of_tree = np.full(len(TREES) + 1, -1, dtype=np.int64)
        for code, names in enumerate(options.trees):
            split_of_tree[[list(TREES).index(name) for name in names]] = code
        asked = np.where(split_of_tree[tree] >= 0, tree, -1)
        asked[[wordnet.synset_id(name) for name in options.stop_golds]] = -1
        whole = _kept_whole(taxonomy, options)
        named = answers_of(taxonomy, whole & (taxonomy.zipf >= options.min_answer_zipf), asked)
        pairs = pairs_of(
            taxonomy,
            whole & (taxonomy.zipf >= options.min_zipf),
            named,
            max_hops=options.max_hops,
            max_sense=options.max_sense,
            min_weight=options.min_weight,
        )
        tops = np.flatnonzero(named >= 0)
        answer_tree = np.full(size, -1, dtype=np.int64)
        answer_tree[named[tops]] = asked[tops]
        general = np.zeros(size)
        np.maximum.at(general, named[tops], generality(wordnet)[tops])
        split = _homes(pairs, split_of_tree[answer_tree], size, options.min_share)
        pairs = pairs.take(split[pairs.word] == split[pairs.answer])
        senses = taxonomy.senses
        placed = tree[senses.synset] >= 0
        where = senses.word[placed] * len(TREES) + tree[senses.synset[placed]]
        words = sorted_unique(np.concatenate([pairs.word, pairs.answer]))
        owner, synset = taxonomy.above(words)
        position, parent = wordnet.hypernyms.expand(tops)
        everything = generality(wordnet)
        near = everything[parent] - everything[tops[position]] <= np.log(NEAR)
        position, parent = position[near], parent[near]
        return cls(
            taxonomy,
            options,
            pairs,
            split,
            answer_tree,
            general,
            taxonomy.cannot_deny(words),
            sorted_unique(where),
            sorted_unique(owner * len(wordnet) + synset),
            Graph.from_edges(max(size, len(wordnet)), named[tops[position]], parent),
        )

    def deniable(self, word: Ints, other: Ints) -> Bools:
        """Tell for parallel arrays of words whether it is false that one is the other."""
        return ~contains(self.undeniable, word * len(self.taxonomy) + other)

    def unlike(self, word: Ints, answer: Ints) -> Bools:
        """Tell for parallel arrays whether a word is far from being what an answer says.

        WordNet is incomplete: that it puts a word under another answer of the same kind ("a
        diamond is a gem") does not make this one false ("a mineral"). So either no sense of the
        word is in the answer's tree, or none is under what stands right above the answer.
        """
        strange = ~contains(self.in_tree, word * len(TREES) + self.tree[answer])
        size = len(self.taxonomy.wordnet)
        position, parent = self.parents.expand(answer)
        near = np.zeros(word.size, dtype=np.bool_)
        near[position[contains(self.under, word[position] * size + parent)]] = True
        return np.asarray(strange | ~near)

    @cached_property
    def _words(self) -> Ints:
        """Row bounds of each word's pairs."""
        return np.searchsorted(self.pairs.word, np.arange(len(self.taxonomy) + 1))

    def facets(self, family: str) -> tuple[Ints, Ints]:
        """What else the word of a pair is, that may stand beside the pair's answer.

        Returns parallel arrays of rows of the pairs: (gold, distractor), sorted.
        """
        pairs, start = self.pairs, self._words
        lengths = np.diff(start)[pairs.word]
        gold = np.repeat(np.arange(pairs.word.size, dtype=np.int64), lengths)
        other = ragged_ranges(start[pairs.word], lengths)
        kept = (pairs.share[gold] >= self.options.min_share) & (gold != other)
        if family == PAPER:
            kept &= pairs.share[other] >= self.options.min_share
        gold, other = gold[kept], other[kept]
        if family == MATCHED:
            first, second = pairs.answer[gold], pairs.answer[other]
            level = np.abs(self.general[first] - self.general[second])
            kept = level <= np.log(self.options.level)
            kept &= self.deniable(first, second) & self.deniable(second, first)
            gold, other = gold[kept], other[kept]
        return gold, other

    def word_pairs(self, family: str, oversampling: int, rng: RandomGenerator) -> WordPairs:
        """Find pairs of words that share an answer and each are something else alone."""
        gold, other = self.facets(family)
        start = np.searchsorted(gold, np.arange(self.pairs.word.size + 1))
        x, y = self._coupled(np.flatnonzero(np.diff(start)), oversampling, rng)
        words = self.pairs.word
        apart = self.deniable(words[x], words[y]) & self.deniable(words[y], words[x])
        x, y = x[apart], y[apart]
        parts = []
        for side, (own, foreign) in enumerate(((x, y), (y, x))):
            lengths = np.diff(start)[own]
            row = np.repeat(np.arange(own.size, dtype=np.int64), lengths)
            at = other[ragged_ranges(start[own], lengths)]
            node, word = self.pairs.answer[at], words[foreign[row]]
            kept = self.deniable(word, node)
            if family == MATCHED:
                kept &= self.unlike(word, node)
            parts.append(Candidates(row[kept], node[kept], np.full(int(kept.sum()), side)))
        found = Candidates(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        sides = [np.bincount(part.row, minlength=x.size) > 0 for part in parts]
        asked = WordPairs(x, y, found).take(sides[0] & sides[1])
        return self._capped(asked, rng.child("words"))

    def _capped(self, asked: WordPairs, rng: RandomGenerator) -> WordPairs:
        """Bound how often a word stands in each of the two places."""
        cap, pairs = self.options.cap_per_word, self.pairs
        for place in ("x", "y") if cap else ():
            word = pairs.word[getattr(asked, place)]
            identity = asked.x * pairs.word.size + asked.y
            asked = asked.take(first_of_each(word, cap, rng.child(place), identity))
        return asked

    def _coupled(self, rows: Ints, oversampling: int, rng: RandomGenerator) -> tuple[Ints, Ints]:
        """Couple pairs that have one answer: each with as many others as any, in seeded order.

        Args:
            rows: of the pairs.
            oversampling: couples of an answer, in multiples of its cap; 0: all.
            rng: the random generator.
        """
        answer = self.pairs.answer[rows]
        rows = rows[np.lexsort((rng.bits(answer, self.pairs.word[rows]), answer))]
        answer = self.pairs.answer[rows]
        golds, first, count = np.unique(answer, return_index=True, return_counts=True)
        caps = np.array(self.caps)[self.split[golds]]
        reach = count // 2
        if oversampling:
            wanted = -(-oversampling * caps // count)
            reach = np.where(caps > 0, np.minimum(reach, wanted), reach)
        # The word at place i of its n is coupled with those at i + 1, i + 2, ..., modulo n.
        steps = np.repeat(reach, count)
        at = np.repeat(np.arange(rows.size, dtype=np.int64), steps)
        step = ragged_ranges(np.ones_like(steps), steps)
        group = np.repeat(np.arange(golds.size), count)[at]
        partner = first[group] + (at - first[group] + step) % count[group]
        # Half way round, couples come twice.
        twice = (2 * step == count[group]) & (at > partner)
        return rows[at[~twice]], rows[partner[~twice]]

    @property
    def caps(self) -> tuple[int, int, int]:
        """The most questions of a gold, for each split (0: no cap)."""
        rest = self.options.cap_per_gold
        return self.options.train_cap_per_gold, rest, rest


def _kept_whole(taxonomy: Taxonomy, options: TaxonomyOptions) -> Bools:
    """Which words are plain nouns, and whole to the tokenizer if one is asked for."""
    plain = taxonomy.plain
    if not options.tokenizer:
        return plain
    return plain & whole_words(taxonomy.words.to_pylist(), options.tokenizer)


def _homes(pairs: Pairs, split_of_answer: Ints, size: int, min_share: float) -> Ints:
    """Return the split of every word: an answer's own, else where the word has most answers."""
    votes = np.zeros((size, len(SPLITS)), dtype=np.int64)
    np.add.at(votes, (pairs.word, split_of_answer[pairs.answer]), 1)
    # Without a usual sense there is nothing to ask.
    golds = np.zeros_like(votes)
    common = pairs.share >= min_share
    np.add.at(golds, (pairs.word[common], split_of_answer[pairs.answer[common]]), 1)
    votes[golds == 0] = 0
    home = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
    return np.where(split_of_answer >= 0, split_of_answer, home)
