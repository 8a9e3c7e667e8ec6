"""Features of pairs of synsets that help predict whether readers accept one for the other.

The judged models (:mod:`builders.judged`) are fitted on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.plan import Facts
from builders.english.kin import content_words
from builders.judged.model import (
    CROSSES,
    JUDGED,
    JUDGED_WORDNET,
    JudgedModel,
    judged_alone,
    judged_classes,
    judged_kinds,
)
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
from kb_cache.derived import derived
from kb_cache.graph import Graph
from kb_cache.wordnet.types import LEXNAMES, POS, WordNet
from kbprobe.arrays import Bools, Floats, Ints, KeySet, UInts, contains, mask_at
from kbprobe.columns import codes, mask, to_numpy
from kbprobe.rng import RandomGenerator

THINGS = ("animal", "artifact", "body", "food", "object", "person", "plant", "substance")
"""Lexicographer files of nouns for things that people can point at."""

LANES = 16
"""Informative words are hashed to this many 64-bit lanes, each compared in one operation."""

FARTHEST = 5
"""The distance recorded if a common ancestor is this far or farther, or there is none."""

OF_CONCEPT = {
    "verb": "verb",
    "other_pos": "other_pos",
    "zipf_concept": "zipf",
    "sense_concept": "sense",
    "generality_concept": "generality",
}
OF_NODE = {name: name for name in ("thing", "zipf", "sense", "generality")}
"""Features of the concept alone, and of the node alone, as features of single synsets."""

OVERLAPS = ("gloss_overlap", "concept_names_node", "node_names_concept", "lemma_overlap")
GOLD_OVERLAPS = ("gold_overlap", "gold_names_node", "node_names_gold", "gold_lemma_overlap")
"""Shares of words in common, of the concept and the node, and of the gold and the node."""

Features = dict[str, Floats]
"""Name -> a value for each pair."""


class WordSets(NamedTuple):
    """The informative words of texts, for several kinds of text per owner.

    Attributes:
        bits: (owners * kinds, LANES) a bit for each word.
        folded: (owners, kinds) the same folded into 64 bits: texts without a common bit share no
            word.
        size: (owners * kinds,) the number of words.
    """

    bits: UInts
    folded: UInts
    size: Floats

    @classmethod
    def of(cls, owners: int, kinds: Sequence[Graph], left_out: Bools) -> WordSets:
        """Collect the words of texts, given as graphs from owners to words, except some."""
        bits = np.zeros((owners * len(kinds), LANES), dtype=np.uint64)
        for kind, words in enumerate(kinds):
            kept = ~left_out[words.indices]
            place = RandomGenerator(0).below(64 * LANES, words.indices[kept])
            bit = np.uint64(1) << (place % 64).astype(np.uint64)
            np.bitwise_or.at(bits, (words.sources[kept] * len(kinds) + kind, place // 64), bit)
        folded = np.bitwise_or.reduce(bits, axis=1).reshape(-1, len(kinds))
        return cls(bits, folded, np.bitwise_count(bits).sum(axis=1).astype(np.float64))

    def shared(self, one: Ints, other: Ints) -> Floats:
        """Return the share of common words of pairs of owners, for each pair of kinds of text.

        The shape is (kinds of the one * kinds of the other, pairs).
        """
        meet = (self.folded[one].T[:, None] & self.folded[other].T) != 0
        share, some = np.zeros(meet.shape), np.flatnonzero(meet)
        kinds = self.folded.shape[1]
        both, pair = np.divmod(some, one.size)
        left, right = one[pair] * kinds + both // kinds, other[pair] * kinds + both % kinds
        both_have = self.bits.take(left, axis=0)
        both_have &= self.bits.take(right, axis=0)
        common = np.bitwise_count(both_have).sum(axis=1)
        share.ravel()[some] = common / np.sqrt(self.size[left] * self.size[right])
        return share.reshape(kinds * kinds, -1)


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """How far readers accept the second synset of a pair as an answer for the first.

    Attributes:
        keys: ``first * synsets + second`` of the pairs that were judged, ascending.
        worth: how far readers accept each; the last value, for all other pairs, is NaN.
    """

    keys: Ints
    worth: Floats

    @classmethod
    def of(cls, wordnet: WordNet, judged: Mapping[tuple[str, str], float]) -> JudgedPairs:
        """Look up synsets by name; empty for any WordNet version but the readers'."""
        if wordnet.version != JUDGED_WORDNET:
            judged = {}
        lower, upper = (wordnet.synset_ids(pair[end] for pair in judged) for end in (0, 1))
        keys = np.where((lower < 0) | (upper < 0), -1, lower * len(wordnet) + upper)
        order = np.argsort(keys)
        worth = np.array([*judged.values()], dtype=np.float64)[order]
        return cls(keys[order], np.append(worth, np.nan))

    def find(self, keys: Ints) -> Floats:
        """Return how far readers accept pairs; NaN if not judged."""
        return self.worth[self._known.positions(keys)]

    @cached_property
    def _known(self) -> KeySet:
        return KeySet(self.keys)


class Judgements(NamedTuple):
    """Readers' judgements of the synsets of a WordNet.

    Attributes:
        kinds: judgements of readers who saw both synsets' definitions, or the word in its sentence.
        alone: judgements of readers who saw the words of the lower one without their definition.
        crosses: (synsets,) how much each overlaps with its neighbours; the usual value if not
            judged.
    """

    kinds: JudgedPairs
    alone: JudgedPairs
    crosses: Floats


@derived
def judged_synsets(wordnet: WordNet) -> Judgements:
    """Look up the synsets that readers judged."""
    crosses = np.full(len(wordnet), CROSSES["overlapping"])
    if wordnet.version == JUDGED_WORDNET:
        classes = judged_classes()
        synset, worth = wordnet.synset_ids(classes), np.array([*classes.values()])
        crosses[synset[synset >= 0]] = worth[synset >= 0]
    kinds, alone = (JudgedPairs.of(wordnet, found) for found in (judged_kinds(), judged_alone()))
    return Judgements(kinds, alone, crosses)


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Features of pairs of synsets of one WordNet."""

    wordnet: WordNet

    @cached_property
    def _main(self) -> Ints:
        return main_parents(self.wordnet)

    @cached_property
    def _above(self) -> Ints:
        """(synsets, reach) the ancestors of each, parent first; -1 if there is none."""
        all_nodes = np.arange(len(self.wordnet), dtype=np.int64)
        above = [ancestors(self._main, all_nodes, reach) for reach in range(1, FARTHEST)]
        return np.stack(above, axis=1)

    @cached_property
    def _single(self) -> Features:
        """Features of single synsets: a value for each synset."""
        pos = self.wordnet.pos_codes
        return {
            "verb": (pos == POS.index("v")).astype(np.float64),
            "other_pos": (pos > POS.index("v")).astype(np.float64),
            "thing": self._thing,
            "zipf": zipf_of(self.wordnet, np.arange(pos.size, dtype=np.int64)),
            "sense": self._sense,
            "generality": self._general,
            "crosses": self.crosses,
        }

    @cached_property
    def _general(self) -> Floats:
        return generality(self.wordnet)

    @cached_property
    def _sense(self) -> Floats:
        """(synsets,) the sense number of each within its first lemma."""
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
        """The code and name of each file of nouns and verbs; the code is -1 if none is in it."""
        names = codes(self.wordnet.synsets["lexname"])[1]
        known = [name for name in LEXNAMES if name.startswith(("noun.", "verb."))]
        return [(names.index(name) if name in names else -1, name) for name in known]

    def common(self, one: Ints, other: Ints) -> Floats:
        """Return the distance to the nearest ancestor that is equally far above two synsets."""
        above = self._above[one]
        same = (above == self._above[other]) & (above >= 0)
        return np.where(same.any(axis=1), same.argmax(axis=1) + 1.0, float(FARTHEST))

    def same_word(self, one: Ints, other: Ints) -> Bools:
        """Return whether two synsets share a word, or a gloss."""
        return self._alike.contains(one * len(self.wordnet) + other)

    def stratum(self, concept: Ints, gold: Ints, node: Ints) -> Ints:
        """Return how near each node is to the gold, or to the concept: an index into `STRATA`."""
        parent, file = self._main[gold], self.file
        near = np.where(file[gold] == file[node], 1, 0)
        near[(parent >= 0) & (parent == self._main[node])] = 2
        near[self.same_word(concept, node)] = 3
        return near

    @cached_property
    def _alike(self) -> KeySet:
        return KeySet(alike(self.wordnet).keys)

    def of_pair(self, concept: Ints, node: Ints) -> Features:
        """Return features for whether ``node`` is true of ``concept``, for any relation."""
        return {
            **{name: self._single[of][concept] for name, of in OF_CONCEPT.items()},
            **{name: self._single[of][node] for name, of in OF_NODE.items()},
            "same_file": (self.file[concept] == self.file[node]) * 1.0,
            **dict(zip(OVERLAPS, word_sets(self.wordnet).shared(concept, node), strict=True)),
        }

    def by_generality(self, one: Ints, other: Ints) -> tuple[Ints, Ints]:
        """Return the less general of two synsets, and the more general."""
        lower = np.where(self._general[one] < self._general[other], one, other)
        return lower, np.where(lower == one, other, one)

    def judged_kind(self, lower: Ints, upper: Ints) -> Floats:
        """Return how far readers accept ``lower`` as a kind of ``upper``; NaN if not judged."""
        return judged_synsets(self.wordnet).kinds.find(lower * len(self.wordnet) + upper)

    def judged_alone(self, lower: Ints, upper: Ints) -> Floats:
        """Return the same for readers who saw the words of ``lower`` without their definition."""
        return judged_synsets(self.wordnet).alone.find(lower * len(self.wordnet) + upper)

    @cached_property
    def crosses(self) -> Floats:
        """(synsets,) how much each overlaps with its neighbours; the usual value if not judged."""
        return judged_synsets(self.wordnet).crosses

    def beside(self, concept: Ints, gold: Ints, node: Ints) -> Features:
        """Return features for whether readers accept ``node`` as another answer than ``gold``."""
        common = self.common(gold, node)
        pair = self.of_pair(concept, node)
        return {
            **pair,
            **{f"common_{reach}": (common == reach) * 1.0 for reach in range(1, FARTHEST)},
            "same_word": self.same_word(concept, node) * 1.0,
            "common_concept": self.common(concept, node),
            "crosses": self.crosses[node],
            "crosses_concept": self.crosses[concept],
            "more_general": pair["generality"] - self._general[gold],
            **dict(zip(GOLD_OVERLAPS, word_sets(self.wordnet).shared(gold, node), strict=True)),
            "verb_common": pair["verb"] * (common == 1),
            "thing_common": pair["thing"] * (common == 1),
        }

    def chances(self, model: JudgedModel, probe: str) -> Callable[[Ints, Ints, Ints], Floats]:
        """Return the model's probability as a function of the arguments of `beside`."""
        asked = {name: np.array(float(name == probe)) for name in JUDGED}

        def chance(concept: Ints, gold: Ints, node: Ints) -> Floats:
            return model.chance({**asked, **self.beside(concept, gold, node)})

        return chance

    def of_gold(self, facts: Facts, concept: Ints, gold: Ints, glosses: Glosses) -> Features:
        """Return features for whether readers accept a gold; ``facts`` are the paths to it."""
        subject, target = facts.subject.codes, facts.object.codes
        lengths = np.diff(facts.indptr)
        pair = np.repeat(np.arange(gold.size, dtype=np.int64), lengths)
        down = self._general[subject] > self._general[target]
        child, parent = np.where(down, target, subject), np.where(down, subject, target)
        bear = glosses.bear_out(child, parent)
        names = glosses.name(child, parent)
        vague = vague_synsets(self.wordnet)
        lower, upper = self.by_generality(concept, gold)
        features = self.of_pair(concept, gold)
        between = np.ones(target.size, dtype=np.bool_)
        between[facts.indptr[1:] - 1] = False
        steps = pair[between]
        judged = self.judged_kind(target[between], upper[steps])
        return {
            **features,
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
            "verb_hops": features["verb"] * (lengths - 1),
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


COMMON_SHARE = 0.01
"""Words in at least this share of the definitions are not counted as shared."""


class SynsetWords(NamedTuple):
    """The content words of synsets. Graphs lead from synsets to words, both numbered from 0.

    Attributes:
        in_gloss: synset -> content words of its definition.
        in_lemmas: synset -> those of its lemmas.
        single: synset -> those of its lemmas that are single words.
        common: (words,) which words occur too often in definitions to be informative.
    """

    in_gloss: Graph
    in_lemmas: Graph
    single: Graph
    common: Bools


@derived
def synset_words(wordnet: WordNet) -> SynsetWords:
    """Return the content words of all definitions and lemmas."""
    lemmas, nodes = lemma_texts(wordnet), np.arange(len(wordnet), dtype=np.int64)
    alone = np.flatnonzero(~mask(pc.match_substring_regex(lemmas, "[ _-]")))
    joined = pc.binary_join(
        pa.ListArray.from_arrays(wordnet.sense_start.astype(np.int32), lemmas), " "
    )
    texts = shown_glosses(wordnet), joined, lemmas.take(pa.array(alone))
    owners = nodes, nodes, wordnet.sense_synset[alone]
    found = content_words(*texts)
    size = max(len(wordnet), found[0].vocabulary)
    graphs = []
    for words, owner in zip(found, owners, strict=True):
        position, word = words.of(np.arange(owner.size, dtype=np.int64))
        graphs.append(Graph.from_edges(size, owner[position], word))
    in_gloss, in_lemmas, single = graphs
    uses = np.bincount(found[0].ids, minlength=size)
    return SynsetWords(in_gloss, in_lemmas, single, uses > COMMON_SHARE * len(wordnet))


@lru_cache(maxsize=2)
def word_sets(wordnet: WordNet) -> WordSets:
    """Return the informative words of each synset's gloss, and of its lemmas."""
    words = synset_words(wordnet)
    return WordSets.of(len(wordnet), (words.in_gloss, words.in_lemmas), words.common)


@dataclass(frozen=True)
class Glosses:
    """The words that the definitions of some synsets name and share.

    Attributes:
        nodes: the synsets, each once.
        words: the content words of all synsets.
    """

    nodes: Ints
    words: SynsetWords

    @classmethod
    def of(cls, wordnet: WordNet, nodes: Ints) -> Glosses:
        """Read the definitions of some synsets."""
        return cls(nodes, synset_words(wordnet))

    @cached_property
    def _uses(self) -> Ints:
        """(words,) the number of definitions that contain each word."""
        words = self.words.in_gloss
        return np.bincount(words.expand(self.nodes)[1], minlength=len(words))

    def name(self, child: Ints, parent: Ints) -> Bools:
        """Return whether the child's definition names the parent, for pairs of synsets."""
        pair, word = self.words.in_gloss.expand(child)
        single = self.words.single
        named = contains(single.keys, parent[pair] * len(single) + word)
        return any_of(pair, named, child.size)

    def bear_out(self, child: Ints, parent: Ints) -> Bools:
        """Return whether the child's definition supports the edge, for pairs of synsets.

        It does so if it names the parent, or shares a rare word with the parent's definition.
        """
        in_gloss = self.words.in_gloss
        pair, word = in_gloss.expand(child)
        shared = contains(in_gloss.keys, parent[pair] * len(in_gloss) + word)
        shared &= self._uses[word] < COMMON_SHARE * self.nodes.size
        return self.name(child, parent) | any_of(pair, shared, child.size)


def any_of(owner: Ints, marked: Bools, size: int) -> Bools:
    """Return (size,) whether any of the lines of each owner is marked."""
    return mask_at(size, owner[marked])
