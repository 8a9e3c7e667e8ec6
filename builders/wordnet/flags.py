"""What keeps WordNet questions out of the clean tier."""

from __future__ import annotations

import numpy as np

from builders.engine.plan import Facts, Flags
from builders.judged.model import judged_model
from builders.wordnet.features import Glosses, features_of
from builders.wordnet.synsets import known_synsets, vague_synsets
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Ints, sorted_unique
from kbprobe.columns import to_numpy

ASKED_SENSES = 5
"""A word without a sentence is asked about only in one of this many first senses."""

DOUBTFUL, VAGUE = "doubtful_gold", "vague_gold"
MINOR_SENSE, TAXON = "minor_sense", "taxon"

ISA_FLAGS = {
    DOUBTFUL: "readers doubt the gold or, by the model of their judgements (builders/judged), too "
    "few of them would accept one like it",
    VAGUE: "the gold overlaps with its neighbours: a device may be equipment, and an implement too",
}


def isa_flags(wordnet: WordNet, facts: Facts, concept: Ints, gold: Ints, probe: str) -> Flags:
    """Return the flags of pairs of a concept and a gold; ``facts`` are the paths between them."""
    structure = wordnet.structure
    on_paths = np.concatenate([facts.subject.codes, facts.object.codes])
    glosses = Glosses.of(structure, sorted_unique(on_paths))
    pairs, model = features_of(structure), judged_model(f"{probe}_gold")
    chance = model.chance(pairs.of_gold(facts, concept, gold, glosses))
    judged = pairs.judged_kind(*pairs.by_generality(concept, gold))
    far = np.diff(facts.indptr) > 1
    least = np.where(far, model.thresholds[f"{probe}:far"], model.thresholds[probe])
    doubted = np.where(np.isnan(judged), chance < least, judged < 1)
    if probe == "hyponymy":
        # Choices are shown without definitions. Those far below a noun, and those below a verb,
        # must have been approved in that form: of rows whose golds were judged with their
        # definitions, readers found 89% and 85% sound. Farther below a verb (84%), none was
        # approved.
        verb = structure.pos_codes[concept] == POS.index("v")
        alone = pairs.judged_alone(*pairs.by_generality(concept, gold))
        doubted |= np.where(np.isnan(alone), far | verb, alone < 1)
    flags = Flags.none(gold.size).mark(DOUBTFUL, doubted)
    return flags.mark(VAGUE, np.isin(gold, vague_synsets(structure)))


def asked_in_minor_sense(wordnet: WordNet, senses: Ints) -> Bools:
    """Mark the senses (rows of WordNet's) in which few readers would understand a word."""
    return np.asarray(to_numpy(wordnet.senses["number"])[senses] > ASKED_SENSES)


def taxa(wordnet: WordNet) -> Ints:
    """Return the groups of biological classifications: genera, families, orders."""
    groups = known_synsets(wordnet, ("taxonomic_group.n.01",))
    return np.concatenate([groups, wordnet.isa.reversed.walk(groups).node])
