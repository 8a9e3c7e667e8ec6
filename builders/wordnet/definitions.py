"""The probe wordnet_definitions: what a word means in its sentence (TACL 2020, section 3)."""

from __future__ import annotations

import numpy as np

from builders.engine.plan import Plan
from builders.engine.probe import probe
from builders.wordnet.options import DefinitionsOptions
from builders.wordnet.planning import IN_CONTEXT, WordNetPlanner, in_contexts
from builders.wordnet.source import has_glosses, require_enough
from builders.wordnet.synsets import contexts_of, of_parts_of_speech
from kb_cache.wordnet.types import WordNet
from kbprobe.rng import RandomGenerator


@probe("wordnet_definitions", options=DefinitionsOptions, **IN_CONTEXT)
def wordnet_definitions(
    wordnet: WordNet, options: DefinitionsOptions, rng: RandomGenerator
) -> Plan:
    """Which of five definitions fits the word, as used in a sentence?"""
    asked = of_parts_of_speech(wordnet, options.pos)
    if wordnet.structure is not wordnet:
        every = int(np.count_nonzero(asked))
        asked &= wordnet.has_words & has_glosses(wordnet)
        found = int(np.count_nonzero(asked))
        require_enough(wordnet, found, every, "synsets with words and a definition")
    contexts = contexts_of(wordnet, asked)
    questions = in_contexts(wordnet, contexts)
    return WordNetPlanner(wordnet, options, rng).of_concepts(
        "definition", contexts.concept, questions
    )
