"""What keeps WordNet questions out of the clean tier."""

from __future__ import annotations

import numpy as np

from builders.engine.flags import Flags
from builders.engine.plan import Facts
from builders.english.word_lists import word_list
from builders.wordnet.glosses import Glosses
from builders.wordnet.synsets import known_synsets
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Ints
from kbprobe.columns import to_numpy

MAIN_SENSES = 4
"""A gold is shown by a lemma of which it is one of the first so many senses."""

UNCONFIRMED, VAGUE, MINOR_SENSE = "unconfirmed_step", "vague_gold", "minor_sense"
TAXON = "taxon"

ISA_FLAGS = {
    UNCONFIRMED: "the definitions of its two ends do not bear out an edge on the path between word "
    "and gold (a word's own hypernym counts as sure)",
    VAGUE: "the gold, or a node on the path to it, is so general that much else is a kind of it",
    MINOR_SENSE: f"the gold is none of the first {MAIN_SENSES} senses of the lemma that shows it",
}

SYNONYMY_FLAGS = {
    TAXON: "the gold is a genus, family or other group of a biological classification, whose name "
    "few know"
}


def isa_flags(wordnet: WordNet, glosses: Glosses, facts: Facts, gold: Ints, down: bool) -> Flags:
    """Return the flags of pairs of a concept and a gold.

    Args:
        wordnet: the knowledge base.
        glosses: of all synsets on the paths.
        facts: the path of each pair, an edge a triple.
        gold: the gold of each pair.
        down: paths lead from a concept to its hyponyms, else to its hypernyms.
    """
    child, parent = facts.subject.codes, facts.object.codes
    if down:
        child, parent = parent, child
    pair = np.repeat(np.arange(gold.size, dtype=np.int64), np.diff(facts.indptr))
    doubtful = _any_of(pair, ~glosses.bear_out(child, parent), gold.size)
    if not down:
        # Meaning drifts along paths; a word's own hypernym is what WordNet's editors judged.
        doubtful &= np.diff(facts.indptr) > 1
    names = sorted(word_list("vague_golds", __package__))
    vague = np.isin(facts.object.codes, known_synsets(wordnet, names))
    number = to_numpy(wordnet.senses["number"])[wordnet.sense_start[gold]]
    return (
        Flags.none(gold.size)
        .mark(UNCONFIRMED, doubtful)
        .mark(VAGUE, _any_of(pair, vague, gold.size))
        .mark(MINOR_SENSE, np.asarray(number > MAIN_SENSES))
    )


def synonymy_flags(wordnet: WordNet, gold: Ints) -> Flags:
    """Return the flags of golds that are shown as sets of words."""
    groups = known_synsets(wordnet, ("taxonomic_group.n.01", "biological_group.n.01"))
    taxa = np.concatenate([groups, wordnet.isa.reversed.walk(groups).node])
    return Flags.none(gold.size).mark(TAXON, np.isin(gold, taxa))


def _any_of(owner: Ints, marked: Bools, size: int) -> Bools:
    found = np.zeros(size, dtype=np.bool_)
    found[owner[marked]] = True
    return found
