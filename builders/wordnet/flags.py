"""What keeps WordNet questions out of the clean tier."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from builders.engine.flags import Flags
from builders.engine.plan import Facts
from builders.english.word_lists import word_list
from builders.wordnet.glosses import Glosses, any_of
from builders.wordnet.synsets import known_synsets, zipf_of
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.columns import codes, single_chunk, to_numpy

GOLD_SENSES = 2
"""A gold is one of the first so many senses of the lemma that shows it with its gloss."""

PREDOMINANT = 0.6
"""Without a gloss, a gold is the sense of so many uses of the lemma that shows it."""

ASKED_SENSES = 5
"""A word is asked about in one of its first so many senses."""

FAMILIAR, FAMILIAR_DOWN = 2.5, 2.2
"""Least word frequency (Zipf) of a gold: readers should know what is a kind of what."""

UNCONFIRMED, VAGUE, MINOR_SENSE, RARE = "unconfirmed_step", "vague_gold", "minor_sense", "rare_gold"
TAXON, MANNER, AMBIGUOUS = "taxon", "manner", "ambiguous_gold"

HYPERNYMY_FLAGS = {
    UNCONFIRMED: "the definitions of its two ends do not bear out an edge on the path from word to "
    "gold, or there are several edges and the word's definition does not name the gold",
    VAGUE: "the gold, or a node on the path to it, is so general that much else is a kind of it",
    MINOR_SENSE: f"the gold is none of the first {GOLD_SENSES} senses of the lemma that shows it, "
    f"or the word is asked about in none of its first {ASKED_SENSES}",
    RARE: f"the gold's first lemma is rarer than Zipf {FAMILIAR}",
}
HYPONYMY_FLAGS = {
    UNCONFIRMED: "the gold's definition does not name the word, or on the path between them a "
    "definition does not name what the node is a kind of",
    VAGUE: "a node on the path to the gold is so general that much else is a kind of it",
    AMBIGUOUS: f"the gold is the sense of less than {PREDOMINANT:.0%} of the uses of the lemma "
    "that shows it, by WordNet's counts",
    MINOR_SENSE: f"the word is asked about in none of its first {ASKED_SENSES} senses",
    RARE: f"the gold's first lemma is rarer than Zipf {FAMILIAR_DOWN}",
    MANNER: "the word is a verb: readers rarely agree on which acts are ways of doing which",
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
        doubtful = any_of(pair, ~glosses.name(target, subject), gold.size)
        doubtful |= ~glosses.name(gold, concept)
    else:
        doubtful = any_of(pair, ~glosses.bear_out(subject, target), gold.size)
        # Meaning drifts along paths, even where each edge is right.
        doubtful |= (np.diff(facts.indptr) > 1) & ~glosses.name(concept, gold)
    vague = np.isin(target, known_synsets(wordnet, sorted(word_list("vague_golds", __package__))))
    least = FAMILIAR_DOWN if down else FAMILIAR
    rare = np.any([zipf_of(one, gold) < least for one in wordnet.languages], axis=0)
    flags = (
        Flags.none(gold.size)
        .mark(UNCONFIRMED, doubtful)
        .mark(VAGUE, any_of(pair, vague, gold.size))
        .mark(RARE, rare)
    )
    if down:
        shares = [predominance(one, gold) for one in wordnet.languages]
        flags = flags.mark(AMBIGUOUS, np.min(shares, axis=0) < PREDOMINANT)
        return flags.mark(MANNER, wordnet.pos_codes[gold] == POS.index("v"))
    for one in wordnet.languages:
        number = to_numpy(one.senses["number"])[one.sense_start[gold]]
        flags = flags.mark(MINOR_SENSE, np.asarray(number > GOLD_SENSES))
    return flags


def predominance(wordnet: WordNet, nodes: Ints) -> Floats:
    """Return of some synsets the share of the uses of their first lemma, in (0, 1], that they have.

    Uses are counted in WordNet's tagged texts, in all parts of speech, and once more for every
    sense, so that each has some.
    """
    lemma, _ = codes(pc.utf8_lower(single_chunk(wordnet.senses["lemma"])).dictionary_encode())
    uses = to_numpy(wordnet.senses["count"]) + 1.0
    share = uses / np.bincount(lemma, uses)[lemma]
    return np.asarray(share[wordnet.sense_start[nodes]])


def asked_in_minor_sense(wordnet: WordNet, senses: Ints) -> Bools:
    """Mark the senses (rows of WordNet's) in which few readers would take a word."""
    return np.asarray(to_numpy(wordnet.senses["number"])[senses] > ASKED_SENSES)


def synonymy_flags(wordnet: WordNet, gold: Ints) -> Flags:
    """Return the flags of golds that are shown as sets of words."""
    return Flags.none(gold.size).mark(TAXON, np.isin(gold, taxa(wordnet)))


def taxa(wordnet: WordNet) -> Ints:
    """Return the groups of biological classifications: genera, families, orders."""
    groups = known_synsets(wordnet, ("taxonomic_group.n.01",))
    return np.concatenate([groups, wordnet.isa.reversed.walk(groups).node])
