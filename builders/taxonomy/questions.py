"""The questions of a taxonomy: two words, what both are, and what they are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.draw.balanced import Candidates, first_of_each
from builders.engine.drops import DropLog
from builders.engine.plan import Flags
from builders.english.kin import holds_kin
from builders.english.screen import whole_words
from builders.english.word_lists import word_list
from builders.taxonomy.crossing import ARGUABLE, TRUE, ListedWords, listed_words
from builders.taxonomy.options import (
    CLEAN_GAP,
    CLEAN_HOPS,
    CLEAN_LETTERS,
    CLEAN_SHARE,
    LEAST_ANSWER_ZIPF,
    MIN_WEIGHT,
    PAPER,
    RARE_ANSWER,
    RARE_WORD,
    TREES,
    TREES_OF_SPLITS,
    TaxonomyOptions,
)
from builders.taxonomy.words import UNSURE, Taxonomy
from builders.wordnet.synsets import generality
from kb_cache.graph import Graph
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import (
    Bools,
    Floats,
    Ints,
    KeySet,
    contains,
    joined,
    lines_of,
    mask_at,
    ragged_ranges,
    sorted_unique,
)
from kbprobe.columns import mask, to_numpy
from kbprobe.format.setups import SPLITS
from kbprobe.rng import RandomGenerator

MAX_REACH = 1_800
"""Maximum number of hyponyms of a choice, at any depth."""

MIN_SHARE = 0.5
"""Minimum share of a word's uses in which it is what a choice says."""

KIN_HOPS = 3
"""Maximum number of edges from related answers to a common hypernym."""

KIN_REACH = 12_000
"""Hypernyms with more synsets below them do not relate answers: all things are "objects"."""

OVERSAMPLING = 4
"""Number of pairs of words considered for a gold, in multiples of its cap."""

FOLLOWED = 4
"""Maximum number of edges that readers follow up from a sense of something intangible."""


class AnswerPairs(NamedTuple):
    """The answers of words: parallel arrays, each (word, answer) once, sorted.

    ``sense`` is the synset of the word and ``top`` that of the answer, ``hops`` edges above it
    (both are -1 if from ConceptNet); ``share`` is the share of the word's uses in this meaning.
    """

    word: Ints
    answer: Ints
    hops: Ints
    sense: Ints
    top: Ints
    share: Floats


def trees_of(wordnet: WordNet, roots: Sequence[Sequence[str]]) -> Ints:
    """Return the tree of every synset, which is that of the nearest root above it, or -1.

    Args:
        wordnet: the taxonomy.
        roots: names of synsets, grouped by tree.

    Raises:
        UsageError: an unknown synset.
    """
    synsets = np.array([wordnet.synset_id(name) for names in roots for name in names], np.int64)
    tree = np.repeat(np.arange(len(roots), dtype=np.int64), [len(names) for names in roots])
    walk = wordnet.hyponyms.walk(synsets)
    node = np.concatenate([synsets, walk.node])
    owner = np.concatenate([tree, tree[walk.source]])
    hops = np.concatenate([np.zeros_like(synsets), walk.hops])
    # Written from far to near: the nearest root is written last.
    order = np.lexsort((-owner, -hops))
    found = np.full(len(wordnet), -1, dtype=np.int64)
    found[node[order]] = owner[order]
    return found


def answers_of(taxonomy: Taxonomy, allowed: Bools, tree: Ints) -> Ints:
    """Return the word that names each synset as an answer, -1 for none.

    A word names the synset of its first sense, or of another sense that is about as common; all
    synsets that it names are in one tree.

    Args:
        taxonomy: the words and their senses.
        allowed: which words may be answers.
        tree: every synset's tree; synsets in none (-1) are not named.
    """
    senses = taxonomy.senses
    rows = np.flatnonzero(senses.main & allowed[senses.word] & (tree[senses.synset] >= 0))
    first = rows[np.unique(senses.word[rows], return_index=True)[1]]
    home = np.full(len(taxonomy), -1, dtype=np.int64)
    home[senses.word[first]] = tree[senses.synset[first]]
    rows = rows[tree[senses.synset[rows]] == home[senses.word[rows]]]
    # The best word for a synset is written last.
    rows = rows[np.lexsort((-senses.word[rows], -senses.number[rows], senses.tagged[rows]))]
    named = np.full(len(tree), -1, dtype=np.int64)
    named[senses.synset[rows]] = senses.word[rows]
    return named


def pairs_of(
    taxonomy: Taxonomy, entities: Bools, named: Ints, max_hops: int | None, min_weight: float
) -> AnswerPairs:
    """Return the answers of each entity.

    Args:
        taxonomy: the words.
        entities: the words to ask about.
        named: every synset's answer, of :func:`answers_of`.
        max_hops: maximum length of the path up; None: no limit.
        min_weight: minimum weight of ConceptNet's edges.
    """
    senses, size = taxonomy.senses, len(taxonomy)
    rows = np.flatnonzero(entities[senses.word])
    walk = taxonomy.trusted.walk(senses.synset[rows], max_hops)
    kept = named[walk.node] >= 0
    row, top, hops = rows[walk.source[kept]], walk.node[kept], walk.hops[kept]
    used = np.where(senses.tangible[row] | (hops <= FOLLOWED), senses.share[row], 0.0)
    found = AnswerPairs(senses.word[row], named[top], hops, senses.synset[row], top, used)
    synonym = np.repeat(np.arange(len(taxonomy.in_synset)), taxonomy.in_synset.degrees)
    same = synonym * size + taxonomy.in_synset.indices
    kept = (found.word != found.answer) & ~contains(same, found.sense * size + found.answer)
    found = lines_of(found, kept)
    start, end = taxonomy.stated(min_weight)
    is_answer = mask_at(size, named[named >= 0])
    edge = entities[start] & is_answer[end]
    start, end, none = start[edge], end[edge], np.full(int(edge.sum()), -1, dtype=np.int64)
    stated = AnswerPairs(start, end, np.ones_like(start), none, none, np.ones(start.size))
    both = joined([found, stated])
    # WordNet before ConceptNet, then the commonest sense, then the nearest.
    order = np.lexsort(
        (both.top, both.hops, both.sense, -both.share, both.sense < 0, both.answer, both.word)
    )
    both = lines_of(both, order)
    key = both.word * size + both.answer
    keys, first = np.unique(key, return_index=True)
    # A sense that reaches an answer in two ways counts once.
    _, once = np.unique(key * (len(named) + 1) + both.sense + 1, return_index=True)
    share = np.bincount(np.searchsorted(keys, key[once]), both.share[once])
    return lines_of(both, first)._replace(share=np.minimum(share, 1.0))


class WordPairs(NamedTuple):
    """Questions without distractors yet: parallel arrays; ``x`` and ``y`` are rows of the pairs.

    Both pairs have the same answer, which is the gold. ``candidates`` may be distractors of the
    rows: group 0 are answers of x only, group 1 of y only.
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
    """The part of a taxonomy that can be asked about under the options.

    Attributes:
        taxonomy, options: the sources of the selection.
        pairs: the answers of the words asked about, in the tier that is built; word and answer are
            of one split.
        flags: the flags of the pairs.
        split: the split of every word; -1 for words in none.
        tops: the synset that each answer names; -1 for other words.
        tree: the tree of each answer, an index into TREES; -1 for other words.
        general: the logarithm of the number of hyponyms of every answer.
        undeniable: `Taxonomy.cannot_deny` of all words of the pairs.
        listed: what the words in the list of crossing kinds are, and are not.
        crossing: the answers of those words, as pairs.
    """

    taxonomy: Taxonomy
    options: TaxonomyOptions
    pairs: AnswerPairs
    flags: Flags
    split: Ints
    tops: Ints
    tree: Ints
    general: Floats
    undeniable: Ints
    listed: ListedWords
    crossing: AnswerPairs

    @classmethod
    def of(cls, taxonomy: Taxonomy, options: TaxonomyOptions, dropped: DropLog) -> AskableTaxonomy:
        """Find the answers of a tier, the words below them, and the split of every word."""
        wordnet, size = taxonomy.wordnet, len(taxonomy)
        tree = trees_of(wordnet, list(TREES.values()))
        split_of_tree = np.full(len(TREES) + 1, -1, dtype=np.int64)
        for code, names in enumerate(TREES_OF_SPLITS.values()):
            split_of_tree[[list(TREES).index(name) for name in names]] = code
        reach = generality(wordnet)
        asked = np.where((split_of_tree[tree] >= 0) & (reach <= np.log(MAX_REACH)), tree, -1)
        shown = taxonomy.zipf >= options.min_zipf
        if options.tokenizer:
            shown &= whole_words(taxonomy.words.to_pylist(), options.tokenizer)
        listed = listed_words(taxonomy, shown, split_of_tree)
        shown &= taxonomy.plain
        if options.screen:
            shown &= ~taxonomy.offensive
        answers = shown & (taxonomy.zipf >= LEAST_ANSWER_ZIPF)
        answers[taxonomy.ids(options.stop_golds, "--stop-golds")] = False
        named = answers_of(taxonomy, answers, asked)
        min_weight = MIN_WEIGHT if taxonomy.conceptnet else 0.0
        entities = shown.copy()
        entities[shown] = taxonomy.counted_like_a_noun(np.flatnonzero(shown))
        pairs = pairs_of(taxonomy, entities, named, options.max_hops, min_weight)
        sound = (pairs.share >= MIN_SHARE) & ~_names_answer(taxonomy, pairs)
        pairs = lines_of(pairs, sound)
        tops = np.full(size, -1, dtype=np.int64)
        crossing, kinds = _crossing_pairs(taxonomy, listed, tree, min_weight)
        for names_of in (kinds, named):
            synsets = np.flatnonzero(names_of >= 0)
            # If a word names several synsets, the most general counts.
            synsets = synsets[np.argsort(reach[synsets], kind="stable")]
            tops[names_of[synsets]] = synsets
        tree_of_answer = np.where(tops >= 0, asked[tops], -1)
        split_of_answer = np.where(tops >= 0, split_of_tree[tree_of_answer], -1)
        split = _homes(pairs, split_of_answer, size)
        for words in (listed.word, listed.kind):
            split[words] = split_of_tree[listed.tree]
        pairs = lines_of(pairs, split[pairs.word] == split[pairs.answer])
        flags = _flags(taxonomy, pairs)
        exempt = options.may_be_doubtful(split[pairs.word])
        kept = flags.of_tier(options.tier, dropped, exempt)
        pairs, flags = lines_of(pairs, kept), flags.take(kept)
        words = sorted_unique(np.concatenate([pairs.word, pairs.answer]))
        general = np.where(tops >= 0, reach[tops], 0.0)
        may_be = lines_of(listed, listed.truth >= ARGUABLE)
        undeniable = sorted_unique(
            np.concatenate([taxonomy.cannot_deny(words), may_be.word * size + may_be.kind])
        )
        return cls(
            taxonomy,
            options,
            pairs,
            flags,
            split,
            tops,
            tree_of_answer,
            general,
            undeniable,
            listed,
            crossing,
        )

    def deniable(self, word: Ints, other: Ints) -> Bools:
        """Return for parallel arrays of words whether it is false that one is the other."""
        return ~contains(self.undeniable, word * len(self.taxonomy) + other)

    @cached_property
    def kin(self) -> Graph:
        """The graph of answers at the same level: near in WordNet, about as general, and different.

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
    def _answers(self) -> Graph:
        """The graph from every word to its answers."""
        return Graph.from_edges(len(self.taxonomy), self.pairs.word, self.pairs.answer)

    @cached_property
    def _keys(self) -> Ints:
        """Sorted keys ``word * len(taxonomy) + answer`` of the pairs."""
        return self.pairs.word * len(self.taxonomy) + self.pairs.answer

    @cached_property
    def all_pairs(self) -> AnswerPairs:
        """The pairs, and after them the crossing ones."""
        return joined([self.pairs, self.crossing])

    def hops(self, words: Ints, answers: Ints) -> Ints:
        """Return for parallel arrays the number of edges from a word to an answer, 0 if none."""
        size, pairs = len(self.taxonomy), self.all_pairs
        keys, first = np.unique(pairs.word * size + pairs.answer, return_index=True)
        at = KeySet(keys).positions((words * size + answers).ravel())
        return np.append(pairs.hops[first], 0)[at].reshape(answers.shape)

    def word_pairs(self, rng: RandomGenerator, dropped: DropLog) -> WordPairs:
        """Find pairs of words that share an answer, each with the paper's distractors."""
        x, y = self._coupled(rng)
        asks = self.makes_question(x, y)
        x, y = x[asks], y[asks]
        found = self._of_one_alone(x, y)
        asked = WordPairs(x, y, found)
        # One that x alone is, and one that y alone is.
        sides = found.row * 2 if found.group is None else found.row * 2 + found.group
        rows = sorted_unique(sides) // 2
        two = np.bincount(rows, minlength=x.size) >= 2
        asked = asked.take(dropped.keep(f"{PAPER}: fewer than two distractors", two))
        return self._capped(asked, rng.child("caps"))

    def makes_question(self, x: Ints, y: Ints) -> Bools:
        """Return for parallel pairs with the same answer whether they make a question.

        Neither word may be a kind of the other, nor may both be something more specific.
        """
        word = self.pairs.word
        apart = self.deniable(word[x], word[y]) & self.deniable(word[y], word[x])
        return np.asarray(apart & self._nearest(x, y))

    def _of_one_alone(self, x: Ints, y: Ints) -> Candidates:
        """Return what one word is and the other is not: the paper's distractors."""
        parts = []
        for side, (own, foreign) in enumerate(((x, y), (y, x))):
            row, node = self._answers.expand(self.pairs.word[own])
            kept = self.deniable(self.pairs.word[foreign[row]], node)
            parts.append(Candidates(row[kept], node[kept], np.full(int(kept.sum()), side)))
        return joined(parts)

    def _nearest(self, x: Ints, y: Ints) -> Bools:
        """Mark pairs that have nothing more specific in common than their answer."""
        row, other = self._answers.expand(self.pairs.word[x])
        closer = self.general[other] < self.general[self.pairs.answer[x[row]]]
        wanted = self.pairs.word[y[row]] * len(self.taxonomy) + other
        shared = contains(self._keys, wanted)
        found = np.ones(x.size, dtype=np.bool_)
        found[row[closer & shared]] = False
        return found

    def _capped(self, asked: WordPairs, rng: RandomGenerator) -> WordPairs:
        """Limit how often a word is in each of the two places, and how often it is gold."""
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
        """Combine pairs with the same answer: each with equally many others, in seeded order."""
        answer, cap = self.pairs.answer, self.options.cap_per_gold
        rows = np.lexsort((rng.bits(answer, self.pairs.word), answer))
        _, first, count = np.unique(answer[rows], return_index=True, return_counts=True)
        reach = count // 2
        if cap:
            reach = np.minimum(reach, -(-OVERSAMPLING * cap // count))
        # The word at index i of n is combined with those at i + 1, i + 2, ..., modulo n.
        steps = np.repeat(reach, count)
        at = np.repeat(np.arange(rows.size, dtype=np.int64), steps)
        step = ragged_ranges(np.ones_like(steps), steps)
        group = np.repeat(np.arange(count.size), count)[at]
        partner = first[group] + (at - first[group] + step) % count[group]
        # From halfway on, combinations would repeat.
        twice = (2 * step == count[group]) & (at > partner)
        return rows[at[~twice]], rows[partner[~twice]]


def _crossing_pairs(
    taxonomy: Taxonomy, listed: ListedWords, tree: Ints, min_weight: float
) -> tuple[AnswerPairs, Ints]:
    """Return what listed words are, and the kind that names each synset (-1: none).

    Relations that WordNet does not state count as one step.
    """
    size = len(taxonomy)
    words, kinds = (np.zeros(size, dtype=np.bool_) for _ in range(2))
    words[listed.word] = kinds[listed.kind] = True
    named = answers_of(taxonomy, kinds, tree)
    stated = pairs_of(taxonomy, words, named, None, min_weight)
    keys = stated.word * size + stated.answer
    wanted = sorted_unique((listed.word * size + listed.kind)[listed.truth == TRUE])
    more = wanted[~contains(keys, wanted)]
    one, none = np.ones_like(more), np.full_like(more, -1)
    both = joined(
        [
            lines_of(stated, contains(wanted, keys)),
            AnswerPairs(more // size, more % size, one, none, none, np.ones(more.size)),
        ]
    )
    return lines_of(both, np.lexsort((both.answer, both.word))), named


def _flags(taxonomy: Taxonomy, pairs: AnswerPairs) -> Flags:
    """Return the flags that keep pairs out of the clean tier."""
    doubtful = pa.array(sorted(word_list("doubtful_kinds")))
    answers = taxonomy.words.take(pa.array(pairs.answer))
    untagged = taxonomy.untagged[pairs.word]
    like_a_name = untagged.copy()
    like_a_name[untagged] = taxonomy.plural_gap(pairs.word[untagged]) > CLEAN_GAP
    lengths = to_numpy(pc.utf8_length(taxonomy.words)).astype(np.int64)
    short = lengths[pairs.word] <= CLEAN_LETTERS
    # A share of UNSURE means a word in no tagged text whose senses with any weight agree; readers
    # may think of those without weight ("medic" as a person).
    otherwise = untagged & _otherwise(taxonomy, pairs)
    unsure = np.isclose(pairs.share, UNSURE)
    return Flags.of(
        {
            "rare_word": taxonomy.zipf[pairs.word] < RARE_WORD,
            "like_a_name": like_a_name | (untagged & short),
            "rare_gold": taxonomy.zipf[pairs.answer] < RARE_ANSWER,
            "vague_gold": mask(pc.is_in(answers, value_set=doubtful)),
            "second_sense": ((pairs.share < CLEAN_SHARE) & ~unsure) | otherwise,
            "far": pairs.hops > CLEAN_HOPS,
        }
    )


def _otherwise(taxonomy: Taxonomy, pairs: AnswerPairs) -> Bools:
    """Mark pairs whose word has a sense that is not below the answer, except plants of foods."""
    senses, size = taxonomy.senses, len(taxonomy)
    rows = np.flatnonzero(np.isin(senses.word, pairs.word))
    plant = taxonomy.wordnet.in_files("noun.plant")[senses.synset[rows]]
    rows = rows[~plant | (senses.share[rows] > 0)]
    walk = taxonomy.wordnet.hypernyms.walk(senses.synset[rows])
    at = np.concatenate([np.arange(rows.size), walk.source])
    position, named = taxonomy.in_synset.expand(np.concatenate([senses.synset[rows], walk.node]))
    at = at[position]
    # (word, what a sense of it is) once for each sense; a pair needs as many as the word has.
    agreed = sorted_unique(at * size + named)
    key = senses.word[rows][agreed // size] * size + agreed % size
    keys, count = np.unique(key, return_counts=True)
    agreeing = np.append(count, 0)[KeySet(keys).positions(pairs.word * size + pairs.answer)]
    return np.asarray(agreeing < np.bincount(senses.word[rows], minlength=size)[pairs.word])


def _names_answer(taxonomy: Taxonomy, pairs: AnswerPairs) -> Bools:
    """Mark pairs whose word and answer share a word: a houseboat and a boat."""
    words, answers = (
        taxonomy.words.take(pa.array(column)) for column in (pairs.word, pairs.answer)
    )
    line = np.arange(len(words), dtype=np.int64)
    held = (
        answer in word for word, answer in zip(words.to_pylist(), answers.to_pylist(), strict=True)
    )
    return holds_kin(words, line, answers, line) | np.fromiter(held, np.bool_, count=len(words))


def _homes(pairs: AnswerPairs, split_of_answer: Ints, size: int) -> Ints:
    """Return the split of every word: an answer's own, otherwise that of most of its answers."""
    votes = np.zeros((size, len(SPLITS)), dtype=np.int64)
    np.add.at(votes, (pairs.word, split_of_answer[pairs.answer]), 1)
    home = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
    return np.where(split_of_answer >= 0, split_of_answer, home)
