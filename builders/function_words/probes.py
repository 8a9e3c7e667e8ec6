"""The acceptability probes: a real sentence, and the same with a function word changed.

After Kim et al., "Probing What Different NLP Tasks Teach Machines about Function Word
Comprehension" (*SEM 2019).
See docs/probes/function_words.md, and docs/methods.md for the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from builders.engine.drops import DropLog
from builders.engine.plan import Plan
from builders.engine.probe import probe
from builders.function_words.acceptability import (
    CLOZES,
    MINIMAL_PAIRS,
    QUESTION_FIELDS,
    acceptability_plan,
)
from builders.function_words.balance import EFFORT, Effort, Tolerance
from builders.function_words.candidates import FLAGS, Swap, swap_candidates
from builders.function_words.coordination import coordination_swaps
from builders.function_words.definiteness import definiteness_swaps
from builders.function_words.options import (
    AcceptabilityOptions,
    LongSentenceOptions,
    SentenceEndOptions,
    WhWordOptions,
)
from builders.function_words.pairs import TOLERANCE, choose_pairs, natural_sentences
from builders.function_words.sentence_ends import FREE, sentence_end_candidates
from builders.function_words.source import open_corpora, tagged_sentences
from builders.function_words.tokens import TaggedTexts
from builders.function_words.wh_words import wh_swaps
from kb_cache.corpora.types import TextCorpus
from kbprobe.arrays import Bools
from kbprobe.format.setups import ACCEPTABILITY
from kbprobe.rng import RandomGenerator

Finder = Callable[[TaggedTexts, Bools], Iterable[Swap]]

FEW_WORDS = {
    "word": Tolerance(4, 2),
    "before": Tolerance(3, 1, 3),
    "behind": Tolerance(3, 1, 3),
    "words": Tolerance(4, 2, 4),
}
"""Tolerances for few words (articles, conjunctions): no neighbour is unbalanced in two splits.
"""
LONGER = Effort(4500, 0.007)
"""How long to search if there are few words."""


@probe(
    "fw_wh_words",
    options=WhWordOptions,
    open=open_corpora,
    question_fields=QUESTION_FIELDS,
    choice_fields=("text",),
    setup=ACCEPTABILITY,
    paper="function_words",
    variants=CLOZES,
    flags=FLAGS,
)
def fw_wh_words(corpus: TextCorpus, options: WhWordOptions, rng: RandomGenerator) -> Plan:
    """Is a sentence acceptable, or was its who, what, where, when, why or how exchanged?"""
    tolerance = {**TOLERANCE, "behind": Tolerance(2, 1)}
    return swapped("fw_wh_words", wh_swaps, corpus, options, rng, tolerance)


@probe(
    "fw_definiteness",
    options=LongSentenceOptions,
    open=open_corpora,
    question_fields=QUESTION_FIELDS,
    choice_fields=("text",),
    setup=ACCEPTABILITY,
    paper="function_words",
    variants=CLOZES,
    flags=FLAGS,
)
def fw_definiteness(corpus: TextCorpus, options: LongSentenceOptions, rng: RandomGenerator) -> Plan:
    """Is a sentence acceptable, or were its articles exchanged, "the" for "a" or "an"?"""
    return swapped("fw_definiteness", definiteness_swaps, corpus, options, rng, FEW_WORDS, LONGER)


@probe(
    "fw_coordination",
    options=LongSentenceOptions,
    open=open_corpora,
    question_fields=QUESTION_FIELDS,
    choice_fields=("text",),
    setup=ACCEPTABILITY,
    paper="function_words",
    variants=CLOZES,
    flags=FLAGS,
)
def fw_coordination(corpus: TextCorpus, options: LongSentenceOptions, rng: RandomGenerator) -> Plan:
    """Is a sentence acceptable, or was its and, or or but exchanged?"""
    return swapped("fw_coordination", coordination_swaps, corpus, options, rng, FEW_WORDS, LONGER)


@probe(
    "fw_eos",
    options=SentenceEndOptions,
    open=open_corpora,
    question_fields=QUESTION_FIELDS,
    choice_fields=("text",),
    setup=ACCEPTABILITY,
    paper="function_words",
    variants=MINIMAL_PAIRS,
    flags={
        FREE: "What is between the right and the wrong end may belong to either sentence: an "
        "adverb, a prepositional phrase, a clause."
    },
)
def fw_eos(corpus: TextCorpus, options: SentenceEndOptions, rng: RandomGenerator) -> Plan:
    """Do two sentences, without punctuation and capitals, end where they are parted?"""
    dropped = DropLog()
    tagged = tagged_sentences(corpus)
    allowed = natural_sentences(tagged, options, dropped)
    ends = rng.child("ends")
    candidates = sentence_end_candidates(tagged, corpus, allowed, options.sigma, ends)
    tolerance = {**TOLERANCE, "before": Tolerance(2, 1)}
    chosen = choose_pairs(candidates, corpus, options, dropped, rng.child("pairs"), tolerance)
    return acceptability_plan("fw_eos", chosen, corpus, options, rng.child("plan"))


def swapped(
    name: str,
    find: Finder,
    corpus: TextCorpus,
    options: AcceptabilityOptions,
    rng: RandomGenerator,
    tolerance: Mapping[str, Tolerance] = TOLERANCE,
    effort: Effort = EFFORT,
) -> Plan:
    """Plan a probe whose sentences are changed by swapping words."""
    dropped = DropLog()
    tagged = tagged_sentences(corpus)
    allowed = natural_sentences(tagged, options, dropped)
    candidates = swap_candidates(tagged, list(find(tagged, allowed)))
    lots = rng.child("pairs")
    chosen = choose_pairs(candidates, corpus, options, dropped, lots, tolerance, effort)
    return acceptability_plan(name, chosen, corpus, options, rng.child("plan"))
