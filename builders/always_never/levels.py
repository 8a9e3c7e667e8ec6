"""How often a statement may hold, guessed before anybody has labelled it.

Annotators need statements that hold sometimes as well as such that always or never do. Nothing
states how often, but much hints at it: what ConceptNet states or denies of a pair, of what the
subject is (birds have wings: so may sparrows) and of what is like it (goats have horns: so may
sheep); and, where sizes are compared, our estimates of them. The guesses only decide which
statements are shown to annotators; they are no labels.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.always_never.pairs import Pool, said_of
from builders.always_never.slots import Slots, Terms
from builders.comparisons.objects import load_things
from kb_cache.graph import Graph
from kb_cache.wordnet.types import POS
from kbprobe.arrays import Bools, Floats, Ints, sorted_unique
from kbprobe.columns import single_chunk, to_numpy

LEVELS = 5
"""0: expected never to hold, 4: always."""

UNFIT = -1
"""A pair that is not asked about."""

SEVERAL = 2.0
"""Weight from which several people stand behind a statement."""

KIN_HOPS = 3
"""Words are kin whose senses have a hypernym in common, up to so many hops above both."""

MOST_KIN = 300
"""A hypernym with more hyponyms than this makes no two words kin."""

MOST_BELOW = 2000
"""A hypernym with more hyponyms than this (an animal) passes nothing on."""

COMMON = 1 / 3
"""What is stated of so many of a word's kin may well hold of it."""

RATIOS = ((4.0, 1.3, 2.0, 1.12), (10.0, 1.5, 4.0, 1.5))
"""Of sizes that are compared, for things that are all of one size, and where one varies: the ratio
from which the larger is expected to be larger always; those between which often; and the ratio up
to which sometimes. Pairs in between are not asked about."""


def said_levels(pool: Pool, slots: Slots) -> Ints:
    """(subjects, objects) the level of each pair, by what ConceptNet says.

    4: several state it, or it is stated of the subject and of what it is; 3: one states it, or it
    is stated of what the subject is; 2: it is stated and denied, or stated of many of its kin; 1:
    of some of them; 0: of none, or denied.
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


def support(pool: Pool, slots: Slots) -> tuple[Bools, Floats]:
    """Return what ConceptNet says of a pair without speaking of its subject.

    Returns:
        (subjects, objects) whether it is stated of what the subject is; and the share of the
        subject's kin of which it is stated.
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


def size_levels(subjects: Terms, objects: Terms, smaller: bool) -> Ints:
    """(subjects, objects) the level of "larger" (or "smaller"), by our estimates of sizes."""
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


def sized(terms: Terms) -> Bools:
    """Mark the words whose sizes we have estimated."""
    known = {thing.name for thing in load_things().things if thing.metres}
    return np.array([text in known for text in terms.text], dtype=np.bool_)


def _senses(slots: Slots, terms: Terms) -> Ints:
    """Return the first noun sense of each word; -1 where WordNet has none."""
    wordnet = slots.wordnet
    synset = to_numpy(wordnet.senses["synset"]).astype(np.int64)
    first = (to_numpy(wordnet.senses["number"]) == 1) & (
        wordnet.pos_codes[synset] == POS.index("n")
    )
    lines = np.flatnonzero(first)
    lemmas = pc.utf8_lower(wordnet.lemma_texts()).take(pa.array(lines))
    at = pc.index_in(pa.array(terms.text, pa.string()), single_chunk(lemmas))
    found = to_numpy(at.fill_null(-1)).astype(np.int64)
    return np.where(found < 0, -1, synset[lines][found])


def _above(slots: Slots, terms: Terms) -> Graph:
    """Lead from each word (by its place) to ConceptNet's words for what is above it in WordNet."""
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


def _kin(slots: Slots, terms: Terms) -> Floats:
    """(words, words) 1 where two different words are kin, else 0."""
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
