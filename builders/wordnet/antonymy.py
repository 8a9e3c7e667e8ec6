"""The probe wordnet_antonymy: which word means the opposite of another."""

from __future__ import annotations

from functools import partial

from builders.engine.plan import Plan
from builders.engine.probe import probe
from builders.relations import AskedEdges
from builders.wordnet.options import AntonymyOptions
from builders.wordnet.planning import ABOUT_EDGES, WordNetPlanner
from builders.wordnet.source import named_first
from builders.wordnet.truths import (
    OPPOSITE_FLAGS,
    near_opposites,
    opposite_flags,
    possible_opposites,
)
from kb_cache.wordnet.types import WordNet
from kbprobe.rng import RandomGenerator


@probe("wordnet_antonymy", options=AntonymyOptions, flags=OPPOSITE_FLAGS, **ABOUT_EDGES)
def wordnet_antonymy(wordnet: WordNet, options: AntonymyOptions, rng: RandomGenerator) -> Plan:
    """Which of five words means the opposite of another, in a given sense?"""
    asked = AskedEdges(
        {"antonym": named_first(wordnet, options, "antonym")},
        flags=partial(opposite_flags, wordnet),
        maybe=partial(near_opposites, wordnet),
    )
    return WordNetPlanner(wordnet, options, rng).of_edges(asked, possible_opposites)
