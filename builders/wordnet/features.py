"""Features of pairs of synsets that bear on whether a reader takes one for true of the other.

The judged models (:mod:`builders.judged`) are fitted on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.audit.ngrams import Tokens, content_words
from builders.engine.plan import Facts
from builders.judged.model import CROSSES, JUDGED_WORDNET, judged_classes, judged_kinds
from builders.wordnet.glosses import Glosses, any_of
from builders.wordnet.neighbourhoods import ancestors, main_parents
from builders.wordnet.synsets import (
    alike,
    generality,
    lemma_texts,
    lexicographer_files,
    shown_glosses,
    vague_synsets,
    zipf_of,
)
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Floats, Ints, KeySet, UInts, contains
from kbprobe.columns import codes, to_numpy
from kbprobe.rng import RandomGenerator

THINGS = ("animal", "artifact", "body", "food", "object", "person", "plant", "substance")
"""Lexicographer files of nouns whose synsets people can point at."""

COMMON_SHARE = 0.01
"""A word in more of the glosses tells nothing where two of them share it."""

LANES = 16
"""Telling words are hashed to so many times 64 bits: comparing them is one operation a lane."""

FARTHEST = 5
"""Edges up to a common ancestor, if it is this far or farther, or there is none."""

Features = dict[str, Floats]
"""Name -> a value for each pair."""


class WordSets(NamedTuple):
    """The telling words of texts.

    Attributes:
        bits: (texts, LANES) a bit for each word.
        folded: (texts,) the same in 64 bits: texts without a common bit share no word.
        size: (texts,) how many words there are.
    """

    bits: UInts
    folded: UInts
    size: Ints

    @classmethod
    def of(cls, tokens: Tokens, left_out: Bools) -> WordSets:
        """Read the words of texts, without some."""
        bits = np.zeros((tokens.lengths.size, LANES), dtype=np.uint64)
        owner = np.repeat(np.arange(tokens.lengths.size), tokens.lengths)
        kept = ~left_out[tokens.ids]
        place = RandomGenerator(0).below(64 * LANES, tokens.ids[kept])
        np.bitwise_or.at(
            bits, (owner[kept], place // 64), np.uint64(1) << (place % 64).astype(np.uint64)
        )
        size = np.bitwise_count(bits).sum(axis=1).astype(np.int64)
        return cls(bits, np.bitwise_or.reduce(bits, axis=1), size)


def shared(left: WordSets, one: Ints, right: WordSets, other: Ints) -> Floats:
    """Return how many words two texts share, relative to the words of both."""
    share = np.zeros(one.size)
    some = np.flatnonzero(left.folded[one] & right.folded[other])
    one, other = one[some], other[some]
    common = np.bitwise_count(left.bits[one] & right.bits[other]).sum(axis=1)
    share[some] = common / np.sqrt(left.size[one] * right.size[other].astype(np.float64))
    return share


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Features of pairs of synsets of one WordNet."""

    wordnet: WordNet

    @cached_property
    def _main(self) -> Ints:
        return main_parents(self.wordnet)

    @cached_property
    def _general(self) -> Floats:
        return generality(self.wordnet)

    @cached_property
    def _zipf(self) -> Floats:
        return zipf_of(self.wordnet, np.arange(len(self.wordnet), dtype=np.int64))

    @cached_property
    def _sense(self) -> Floats:
        """(synsets,) which sense of its first lemma each is."""
        number = to_numpy(self.wordnet.senses["number"])[self.wordnet.sense_start[:-1]]
        return np.asarray(np.minimum(number, 8), dtype=np.float64)

    @cached_property
    def _thing(self) -> Floats:
        file, names = codes(self.wordnet.synsets["lexname"])
        thing = np.isin(names, [f"noun.{name}" for name in THINGS])
        return np.asarray(thing[file], dtype=np.float64)

    @cached_property
    def file(self) -> Ints:
        """(synsets,) the lexicographer file of each."""
        return lexicographer_files(self.wordnet)

    @cached_property
    def _files(self) -> list[tuple[int, str]]:
        names = codes(self.wordnet.synsets["lexname"])[1]
        return [(at, name) for at, name in enumerate(names) if name.startswith(("noun.", "verb."))]

    @cached_property
    def _verb(self) -> Floats:
        return np.asarray(self.wordnet.pos_codes == POS.index("v"), dtype=np.float64)

    @cached_property
    def _words(self) -> tuple[WordSets, WordSets]:
        """Return the telling words of each synset's gloss, and of its lemmas."""
        offsets = pa.array(self.wordnet.sense_start.astype(np.int32))
        lists = pa.ListArray.from_arrays(offsets, lemma_texts(self.wordnet))
        glosses, lemmas = content_words(shown_glosses(self.wordnet), pc.binary_join(lists, " "))
        uses = np.bincount(glosses.ids, minlength=glosses.vocabulary)
        common = uses > COMMON_SHARE * len(self.wordnet)
        return WordSets.of(glosses, common), WordSets.of(lemmas, common)

    def common(self, one: Ints, other: Ints) -> Floats:
        """Return how far above two synsets their nearest common ancestor is at one level."""
        distance = np.full(one.size, float(FARTHEST))
        for reach in range(FARTHEST - 1, 0, -1):
            top = ancestors(self._main, one, reach)
            distance[(top >= 0) & (top == ancestors(self._main, other, reach))] = reach
        return distance

    def same_word(self, one: Ints, other: Ints) -> Bools:
        """Return whether two synsets share a word, or a gloss."""
        return contains(self._alike, one * len(self.wordnet) + other)

    def stratum(self, concept: Ints, gold: Ints, node: Ints) -> Ints:
        """Return how near each node is to the gold, or to the concept: an index into `STRATA`."""
        parent, file = self._main[gold], self.file
        near = np.where(file[gold] == file[node], 1, 0)
        near[(parent >= 0) & (parent == self._main[node])] = 2
        near[self.same_word(concept, node)] = 3
        return near

    @cached_property
    def _alike(self) -> Ints:
        return alike(self.wordnet).keys

    def of_pair(self, concept: Ints, node: Ints) -> Features:
        """Return what bears on whether ``node`` is true of ``concept``, whatever the relation."""
        glosses, lemmas = self._words
        return {
            "verb": self._verb[concept],
            "other_pos": (self.wordnet.pos_codes[concept] > POS.index("v")).astype(np.float64),
            "thing": self._thing[node],
            "same_file": (self.file[concept] == self.file[node]).astype(np.float64),
            "zipf": self._zipf[node],
            "zipf_concept": self._zipf[concept],
            "sense": self._sense[node],
            "sense_concept": self._sense[concept],
            "generality": self._general[node],
            "generality_concept": self._general[concept],
            "gloss_overlap": shared(glosses, concept, glosses, node),
            "concept_names_node": shared(glosses, concept, lemmas, node),
            "node_names_concept": shared(lemmas, concept, glosses, node),
            "lemma_overlap": shared(lemmas, concept, lemmas, node),
        }

    def by_generality(self, one: Ints, other: Ints) -> tuple[Ints, Ints]:
        """Return the less general of two synsets, and the more general."""
        lower = np.where(self._general[one] < self._general[other], one, other)
        return lower, np.where(lower == one, other, one)

    def judged_kind(self, lower: Ints, upper: Ints) -> Floats:
        """Return how far readers take ``lower`` for a kind of ``upper``; NaN: nobody judged it."""
        keys, worth = self._kinds
        return worth[keys.positions(lower * len(self.wordnet) + upper)]

    @cached_property
    def _kinds(self) -> tuple[KeySet, Floats]:
        """Keys ``lower * synsets + upper`` of pairs that were judged, and how; NaN comes last."""
        judged = judged_kinds() if self.wordnet.version == JUDGED_WORDNET else {}
        lower, upper = (self.wordnet.synset_ids(pair[end] for pair in judged) for end in (0, 1))
        keys = np.where((lower < 0) | (upper < 0), -1, lower * len(self.wordnet) + upper)
        order = np.argsort(keys)
        worth = np.array([*judged.values()], dtype=np.float64)[order]
        return KeySet(keys[order]), np.append(worth, np.nan)

    @cached_property
    def crosses(self) -> Floats:
        """(synsets,) how far each cuts across its neighbours; of those not judged, as most do."""
        crosses = np.full(len(self.wordnet), CROSSES["overlapping"])
        if self.wordnet.version == JUDGED_WORDNET:
            judged = judged_classes()
            crosses[self.wordnet.synset_ids(judged)] = [*judged.values()]
        return crosses

    def beside(self, concept: Ints, gold: Ints, node: Ints) -> Features:
        """Return what bears on whether ``node`` would be taken for an answer as ``gold`` is."""
        glosses, lemmas = self._words
        common = self.common(gold, node)
        return {
            **self.of_pair(concept, node),
            **{f"common_{reach}": (common == reach) * 1.0 for reach in range(1, FARTHEST)},
            "same_word": self.same_word(concept, node) * 1.0,
            "common_concept": self.common(concept, node),
            "crosses": self.crosses[node],
            "crosses_concept": self.crosses[concept],
            "more_general": self._general[node] - self._general[gold],
            "gold_overlap": shared(glosses, gold, glosses, node),
            "gold_names_node": shared(glosses, gold, lemmas, node),
            "node_names_gold": shared(lemmas, gold, glosses, node),
            "gold_lemma_overlap": shared(lemmas, gold, lemmas, node),
            "verb_common": self._verb[concept] * (common == 1),
            "thing_common": self._thing[node] * (common == 1),
        }

    def of_gold(self, facts: Facts, concept: Ints, gold: Ints, glosses: Glosses) -> Features:
        """Return what bears on whether readers accept a gold; ``facts`` are the paths to it."""
        subject, target = facts.subject.codes, facts.object.codes
        lengths = np.diff(facts.indptr)
        pair = np.repeat(np.arange(gold.size, dtype=np.int64), lengths)
        down = self._general[subject] > self._general[target]
        child, parent = np.where(down, target, subject), np.where(down, subject, target)
        bear = glosses.bear_out(child, parent)
        names = glosses.name(child, parent)
        vague = vague_synsets(self.wordnet)
        lower, upper = self.by_generality(concept, gold)
        between = np.ones(target.size, dtype=np.bool_)
        between[facts.indptr[1:] - 1] = False
        steps = pair[between]
        judged = self.judged_kind(target[between], upper[steps])
        return {
            **self.of_pair(concept, gold),
            "kind_accepted": any_of(steps, judged == 1, gold.size) * 1.0,
            "kind_doubted": any_of(steps, judged < 1, gold.size) * 1.0,
            "hops_2": (lengths >= 2) * 1.0,
            "hops_3": (lengths >= 3) * 1.0,
            "hops_4": (lengths >= 4) * 1.0,
            "confirmed": 1.0 - any_of(pair, ~bear, gold.size),
            "named_steps": 1.0 - any_of(pair, ~names, gold.size),
            "gloss_names": glosses.name(lower, upper) * 1.0,
            "vague": any_of(pair, np.isin(target, vague), gold.size) * 1.0,
            "thing_concept": self._thing[concept],
            "verb_hops": self._verb[concept] * (lengths - 1),
            "depth": np.minimum(self._depth[gold], 8.0),
            **{f"gold_{name}": (self.file[gold] == at) * 1.0 for at, name in self._files},
        }

    @cached_property
    def _depth(self) -> Floats:
        return self.wordnet.isa.depths().astype(np.float64)


@lru_cache(maxsize=2)
def features_of(wordnet: WordNet) -> PairFeatures:
    """Return the features of pairs of synsets of a WordNet."""
    return PairFeatures(wordnet)
