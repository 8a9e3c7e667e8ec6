"""What keeps WordNet questions out of the clean tier."""

from __future__ import annotations

import numpy as np

from builders.engine.flags import Flags
from builders.engine.plan import Facts
from builders.english.word_lists import word_list
from builders.wordnet.glosses import Glosses
from builders.wordnet.synsets import known_synsets, zipf_of
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Ints
from kbprobe.columns import to_numpy

GOLD_SENSES, GOLD_SENSES_DOWN = 4, 1
"""A gold is one of the first so many senses of the lemma that shows it; few without a gloss."""

ASKED_SENSES, ASKED_SENSES_DOWN = 5, 1
"""A word is asked about in one of its first so many senses: few where hyponyms are to fit it."""

UNCONFIRMED, VAGUE, MINOR_SENSE, RARE = "unconfirmed_step", "vague_gold", "minor_sense", "rare_gold"
TAXON = "taxon"

FAMILIAR, FAMILIAR_DOWN = 2.5, 2.8
"""Least word frequency (Zipf) of a gold: readers should know what is a kind of what."""

ISA_FLAGS = {
    UNCONFIRMED: "the definitions of its two ends do not bear out an edge on the path between word "
    "and gold (over several edges, and for hyponyms, one's definition must name the other)",
    VAGUE: "the gold, or a node on the path to it, is so general that much else is a kind of it",
    MINOR_SENSE: f"the gold is none of the first {GOLD_SENSES} senses of the lemma that shows it "
    f"(a hyponym: not the first), or the word is asked about in none of its first {ASKED_SENSES} "
    f"(hyponymy: {ASKED_SENSES_DOWN})",
    RARE: f"the gold's first lemma is rarer than Zipf {FAMILIAR} (a hyponym: {FAMILIAR_DOWN}), or it "
    "is a verb among hyponyms that the tagged texts never use in this sense",
}

SYNONYMY_FLAGS = {
    TAXON: "the gold is a genus, family or other group of a biological classification, whose name "
    "few know"
}


def isa_flags(
    wordnet: WordNet, glosses: Glosses, facts: Facts, concept: Ints, gold: Ints, down: bool
) -> Flags:
    """Return the flags of pairs of a concept and a gold, whatever the context.

    Args:
        wordnet: the knowledge base.
        glosses: of all synsets on the paths.
        facts: the path of each pair, an edge a triple.
        concept: the concept of each pair.
        gold: the gold of each pair.
        down: paths lead from a concept to its hyponyms, else to its hypernyms.
    """
    subject, target = facts.subject.codes, facts.object.codes
    pair = np.repeat(np.arange(gold.size, dtype=np.int64), np.diff(facts.indptr))
    if down:
        doubtful = _any_of(pair, ~glosses.name(target, subject), gold.size)
        doubtful |= ~glosses.name(gold, concept)
    else:
        doubtful = _any_of(pair, ~glosses.bear_out(subject, target), gold.size)
        # Meaning drifts along paths, even where each edge is right.
        doubtful |= (np.diff(facts.indptr) > 1) & ~glosses.name(concept, gold)
    vague = np.isin(target, known_synsets(wordnet, sorted(word_list("vague_golds", __package__))))
    number = to_numpy(wordnet.senses["number"])[wordnet.sense_start[gold]]
    rare = zipf_of(wordnet, gold) < (FAMILIAR_DOWN if down else FAMILIAR)
    if down:
        # "to rake" is a frequent word, and rarely a verb of moving things.
        verb = wordnet.pos_codes[gold] == POS.index("v")
        rare |= verb & (to_numpy(wordnet.senses["count"])[wordnet.sense_start[gold]] == 0)
    return (
        Flags.none(gold.size)
        .mark(UNCONFIRMED, doubtful)
        .mark(VAGUE, _any_of(pair, vague, gold.size))
        .mark(MINOR_SENSE, np.asarray(number > (GOLD_SENSES_DOWN if down else GOLD_SENSES)))
        .mark(RARE, rare)
    )


def asked_in_minor_sense(wordnet: WordNet, senses: Ints, down: bool) -> Bools:
    """Mark the senses (rows of WordNet's) in which few readers would take a word."""
    most = ASKED_SENSES_DOWN if down else ASKED_SENSES
    return np.asarray(to_numpy(wordnet.senses["number"])[senses] > most)


def synonymy_flags(wordnet: WordNet, gold: Ints) -> Flags:
    """Return the flags of golds that are shown as sets of words."""
    return Flags.none(gold.size).mark(TAXON, np.isin(gold, taxa(wordnet)))


def taxa(wordnet: WordNet) -> Ints:
    """Return the groups of biological classifications: genera, families, orders."""
    groups = known_synsets(wordnet, ("taxonomic_group.n.01",))
    return np.concatenate([groups, wordnet.isa.reversed.walk(groups).node])


def _any_of(owner: Ints, marked: Bools, size: int) -> Bools:
    found = np.zeros(size, dtype=np.bool_)
    found[owner[marked]] = True
    return found
