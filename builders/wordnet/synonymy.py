"""The probe wordnet_synonymy: which words fit a definition (TACL 2020, section 3)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from builders.engine.plan import Plan
from builders.engine.probe import probe
from builders.relations import looks_alike
from builders.wordnet.content import is_common
from builders.wordnet.options import SynonymyOptions
from builders.wordnet.planning import IN_CONTEXT, WordNetPlanner
from builders.wordnet.source import familiar, repeated, require_enough
from builders.wordnet.synsets import (
    first_words,
    has_name,
    of_parts_of_speech,
    other_words,
    questions_by_gloss,
    questions_by_word,
)
from kb_cache.wordnet.types import WordNet
from kbprobe.rng import RandomGenerator

MIN_LEMMAS = 2
"""Minimum number of lemmas of a concept asked about."""

NAME_SHARE = 0.2
"""Maximum share of candidate concepts that are names (instances, and words in capitals), which ask
for recall of an encyclopedia. They can be a larger share of the rows, since other rules drop more
questions about common words."""

FEWEST_LETTERS = 3
"""Minimum length of a choice: "K" for potassium is too short."""


@probe(
    "wordnet_synonymy",
    options=SynonymyOptions,
    **{**IN_CONTEXT, "question_fields": ("word", "gloss", "pos")},
)
def wordnet_synonymy(wordnet: WordNet, options: SynonymyOptions, rng: RandomGenerator) -> Plan:
    """Which of five sets of words fits a definition?"""
    if wordnet.structure is not wordnet:
        return _other_words_plan(wordnet, options, rng)
    asked = of_parts_of_speech(wordnet, options.pos)
    asked &= np.diff(wordnet.sense_start) >= MIN_LEMMAS
    if options.common_only:
        asked &= is_common(wordnet)
    nodes, planner = np.flatnonzero(asked), WordNetPlanner(wordnet, options, rng)
    named = has_name(wordnet)[nodes]
    room = NAME_SHARE * np.count_nonzero(~named) / (1 - NAME_SHARE)
    order = np.lexsort((rng.child("names").bits(nodes), ~named))
    keep = ~named
    keep[order[: min(int(room), np.count_nonzero(named))]] = True
    nodes = nodes[planner.dropped.keep("a name, beyond their share", keep)]
    questions = {wordnet: questions_by_gloss(wordnet, nodes)}
    return planner.of_concepts("synonym", nodes, questions)


def _other_words_plan(wordnet: WordNet, options: SynonymyOptions, rng: RandomGenerator) -> Plan:
    """Plan a probe that asks for the other words of a word's synset.

    Lexicons of languages other than English define few synsets.
    """
    asked = of_parts_of_speech(wordnet, options.pos)
    every = int(np.count_nonzero(asked))
    for edition in wordnet.languages:
        asked &= np.diff(edition.sense_start) >= MIN_LEMMAS
    if options.common_only:
        asked &= is_common(wordnet)
    nodes = np.flatnonzero(asked)
    require_enough(wordnet, nodes.size, every, f"synsets with {MIN_LEMMAS} words or more")
    alike, short = np.zeros((2, nodes.size), dtype=np.bool_)
    for edition in wordnet.languages:
        first = first_words(edition).take(pa.array(nodes)).to_pylist()
        others = other_words(
            edition, nodes, edition.sense_start[nodes].astype(np.int64)
        ).to_pylist()
        pairs = zip(first, others, strict=True)
        alike |= [any(looks_alike(word, other) for other in more) for word, more in pairs]
        short |= [len(more[0]) < FEWEST_LETTERS for more in others]
    planner = WordNetPlanner(wordnet, options, rng)
    dropped = planner.dropped
    tests = {
        "the other words look like the word": alike,
        "the other word is a symbol or an abbreviation": short,
        "the word is rarely used in this sense": ~familiar(wordnet, nodes),
    }
    nodes = nodes[dropped.sift(tests)]
    nodes = nodes[
        dropped.drop("another question reads the same", repeated(wordnet, nodes, nodes, 1))
    ]
    glosses = len(wordnet.languages) == 1
    questions = {
        edition: questions_by_word(edition, nodes, glosses) for edition in wordnet.languages
    }
    return planner.of_concepts("synonym", nodes, questions)
