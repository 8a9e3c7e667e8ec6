"""Select candidate Always-Never statements for annotation: subject-object pairs, by family.

How often a candidate holds is not known yet. Equally many are drawn from each level of
expectation, from those expected never to hold to those expected always to hold.

Annotators need statements that hold sometimes as well as statements that always or never hold. No
source states how often, but there is evidence: what ConceptNet states or denies of a pair, of the
subject's kind (birds have wings: so may sparrows) and of similar things (goats have horns: so may
sheep); and, for comparisons of size, our estimates of sizes. The guesses only decide which
statements are shown to annotators; they are not labels.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.always_never.slots import FAMILIES, Slots, SlotWords, StatementPool, said_of
from builders.comparisons.objects import load_things
from kb_cache.graph import Graph
from kbprobe.arrays import Bools, Floats, Ints, sorted_unique
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.rng import RandomGenerator

LEVELS = 5
"""Number of levels: 0 is expected never to hold, 4 always."""

UNFIT = -1
"""Level of pairs that are not asked about."""

SEVERAL = 2.0
"""Minimum weight of a statement supported by several people."""

KIN_HOPS = 3
"""Words are related if their senses have a common hypernym at most this many hops above both."""

MOST_KIN = 300
"""Hypernyms with more hyponyms than this do not make words related."""

MOST_BELOW = 2000
"""Statements about hypernyms with more hyponyms than this (animal) are not inherited."""

COMMON = 1 / 3
"""Share of a word's related words from which a statement about them may well hold of the word."""

RATIOS = ((4.0, 1.3, 2.0, 1.12), (10.0, 1.5, 4.0, 1.5))
"""Ratios of compared sizes, first for things of fixed size, then if one varies in size: the minimum
for "always", the range for "often", and the maximum for "sometimes". Pairs in between are not asked
about."""


def said_levels(pool: StatementPool, slots: Slots) -> Ints:
    """Return (subjects, objects) the level of each pair, by what ConceptNet says.

    - 4: stated by several people, or of the subject and of its kind;
    - 3: stated by one person, or of the subject's kind;
    - 2: stated and denied, or stated of many related words;
    - 1: stated of some of them;
    - 0: stated of none, or denied.
    """
    own, denied = (pool.weights(negated) > 0 for negated in (False, True))
    inherited, share = support(pool, slots)
    return np.select(
        [
            denied & ~own & ~inherited,
            denied,
            (pool.weights(False) >= SEVERAL) | (own & inherited),
            own | inherited,
            share >= COMMON,
            share > 0,
        ],
        [0, 2, 4, 3, 2, 1],
        0,
    )


def support(pool: StatementPool, slots: Slots) -> tuple[Bools, Floats]:
    """Return the support for pairs that comes from statements about other subjects.

    Returns:
        (subjects, objects) whether it is stated of the subject's kind; and the share of the
        subject's related words of which it is stated.
    """
    above = _above(slots, pool.subjects)
    terms = sorted_unique(above.indices)
    more = said_of(slots, pool.family, terms, pool.objects)
    inherited = np.zeros((pool.subjects.size, pool.objects.size), dtype=np.bool_)
    for at in range(pool.subjects.size):
        reached = np.isin(more.subject, np.searchsorted(terms, above.neighbours(at)))
        inherited[at, more.object[reached & ~more.negated]] = True
    kin = _kin(slots, pool.subjects)
    share = (kin @ (pool.weights(False) > 0)) / np.maximum(kin.sum(axis=1, keepdims=True), 1)
    return inherited, share


def size_levels(subjects: SlotWords, objects: SlotWords, smaller: bool) -> Ints:
    """Return (subjects, objects) the level of "larger" (or "smaller"), by estimated sizes."""
    sizes = {thing.name: thing for thing in load_things().things if thing.metres}
    metres, varies = (
        [np.array([values.get(text, none) for text in terms.text]) for terms in (subjects, objects)]
        for values, none in (
            ({name: thing.metres for name, thing in sizes.items()}, np.nan),
            ({name: thing.shape != "" for name, thing in sizes.items()}, False),
        )
    )
    ratio = np.divide.outer(*metres)
    if smaller:
        ratio = 1 / ratio
    level = np.full(ratio.shape, UNFIT, dtype=np.int64)
    uneven = np.logical_or.outer(*varies)
    with np.errstate(invalid="ignore"):
        for mask, (always, often, oftenest, alike) in zip((~uneven, uneven), RATIOS, strict=True):
            bands = {
                4: ratio >= always,
                3: (ratio >= often) & (ratio <= oftenest),
                2: (ratio <= alike) & (ratio >= 1 / alike),
                1: (1 / ratio >= often) & (1 / ratio <= oftenest),
                0: 1 / ratio >= always,
            }
            for number, band in bands.items():
                level[mask & band & (level == UNFIT)] = number
    return level


def sized(terms: SlotWords) -> Bools:
    """Mark the words for which we have an estimate of size."""
    known = {thing.name for thing in load_things().things if thing.metres}
    return np.array([text in known for text in terms.text], dtype=np.bool_)


def _senses(slots: Slots, terms: SlotWords) -> Ints:
    """Return the first noun sense of each word, or -1 if WordNet has none."""
    wordnet = slots.wordnet
    lines = np.flatnonzero(wordnet.first_nouns)
    lemmas = pc.utf8_lower(wordnet.lemma_texts()).take(pa.array(lines))
    at = pc.index_in(pa.array(terms.text, pa.string()), single_chunk(lemmas))
    found = to_numpy(at.fill_null(-1)).astype(np.int64)
    return np.where(found < 0, -1, wordnet.sense_synset[lines][found])


def _above(slots: Slots, terms: SlotWords) -> Graph:
    """Return the graph from each word (by index) to ConceptNet's words for its hypernyms."""
    wordnet, senses = slots.wordnet, _senses(slots, terms)
    places = np.flatnonzero(senses >= 0)
    walk = wordnet.isa.walk(senses[places])
    used, local = np.unique(walk.node, return_inverse=True)
    below = np.bincount(wordnet.isa.reversed.walk(used).source, minlength=used.size)
    first = wordnet.lemma_texts().take(pa.array(wordnet.sense_start[used]))
    named = slots.conceptnet.lookup(pc.utf8_lower(first).to_pylist())[local]
    known = (named >= 0) & (below[local] <= MOST_BELOW)
    size = max(len(slots.conceptnet), terms.size)
    return Graph.from_edges(size, places[walk.source[known]], named[known])


def _kin(slots: Slots, terms: SlotWords) -> Floats:
    """Return (words, words) 1 if two different words are related, else 0."""
    isa, senses = slots.wordnet.isa, _senses(slots, terms)
    places = np.flatnonzero(senses >= 0)
    walk = isa.walk(senses[places], KIN_HOPS)
    tops, top = np.unique(walk.node, return_inverse=True)
    many = np.bincount(isa.reversed.walk(tops).source, minlength=tops.size) > MOST_KIN
    member = np.zeros((terms.size, tops.size))
    few = ~many[top]
    member[places[walk.source[few]], top[few]] = 1
    kin = (member @ member.T > 0).astype(np.float64)
    np.fill_diagonal(kin, 0)
    return kin


def pool(slots: Slots, name: str) -> StatementPool:
    """Look up a family's words, and what ConceptNet says about their pairs."""
    family = FAMILIES[name]
    subjects, objects = slots.terms(*family.subjects), slots.terms(*family.objects)
    if not family.sources:
        subjects, objects = (
            some.take(np.flatnonzero(sized(some)).tolist()) for some in (subjects, objects)
        )
    fits = [at for at, text in enumerate(objects.text) if text not in family.left_out]
    objects = objects.take(fits)
    return StatementPool(
        name, family, subjects, objects, said_of(slots, family, subjects.id, objects)
    )


def levels(pool: StatementPool, slots: Slots) -> Ints:
    """Return (subjects, objects) the expected level of each pair; UNFIT if not asked about."""
    if not pool.family.sources:
        return size_levels(pool.subjects, pool.objects, pool.name == "smaller")
    return said_levels(pool, slots)


def draw(pool: StatementPool, slots: Slots, rows: int, rng: RandomGenerator) -> tuple[Ints, Ints]:
    """Choose equally many candidates from each level, with no word much more frequent than others.

    Args:
        pool: all pairs.
        slots: where its words come from.
        rows: how many to choose.
        rng: the random generator.

    Returns:
        Subjects and objects, as indices of the pool's words; fewer than ``rows`` if there are not
        enough.
    """
    level = np.where(pool.apart(), levels(pool, slots), UNFIT)
    if pool.proposed is not None:
        level = np.where(pool.proposed, level, UNFIT)
    subjects, objects = pool.subjects.id, pool.objects.id
    race = rng.uniform(subjects[:, None], objects[None, :])
    taken = _Taken(
        _share(rows, subjects.size), _share(2 * rows, objects.size), Counter(), Counter(), []
    )
    # Objects with many statements are drawn equally often for other subjects.
    popular = 1.0 + np.bincount(pool.said.object, minlength=objects.size)
    race = np.where(level > 0, race, race ** np.minimum(popular, 3.0))
    # Start with the rarest level, so that the others make up for what it lacks.
    order = np.argsort(np.bincount(level[level >= 0], minlength=LEVELS), kind="stable")
    for nth, one in enumerate(order.tolist()):
        left = rows - len(taken.pairs)
        taken.add(np.where(level == one, race, 2.0), len(taken.pairs) + left // (LEVELS - nth))
    taken.add(np.where(level != UNFIT, race, 2.0), rows)
    pairs = np.array(sorted(taken.pairs), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _share(rows: int, words: int) -> int:
    """Return how often a word may occur if the rows are spread over all words."""
    return 2 + (3 * rows) // (2 * max(words, 1))


class _Taken(NamedTuple):
    """The pairs chosen so far, and how often each word was chosen."""

    per_subject: int
    per_object: int
    subjects: Counter[int]
    objects: Counter[int]
    pairs: list[tuple[int, int]]

    def add(self, race: Floats, upto: int) -> None:
        """Add pairs, lowest ``race`` first, up to a total of ``upto``; 2 excludes a pair."""
        seen = set(self.pairs)
        width = race.shape[1]
        order = np.argsort(race, axis=None, kind="stable")
        for cell in order[: int((race < 2.0).sum())].tolist():
            if len(self.pairs) >= upto:
                return
            pair = divmod(cell, width)
            if pair in seen or self.subjects[pair[0]] >= self.per_subject:
                continue
            if self.objects[pair[1]] >= self.per_object:
                continue
            self.subjects[pair[0]] += 1
            self.objects[pair[1]] += 1
            self.pairs.append(pair)
