"""The acceptability probes: a real sentence, and the same with a function word changed.

After Kim et al., "Probing What Different NLP Tasks Teach Machines about Function Word
Comprehension" (*SEM 2019).
See docs/probes/function_words.md, and docs/methods.md for the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from builders.engine.drops import DropLog
from builders.engine.plan import Plan
from builders.engine.probe import probe
from builders.function_words.acceptability import (
    CLOZES,
    MINIMAL_PAIRS,
    QUESTION_FIELDS,
    acceptability_plan,
)
from builders.function_words.balance import EFFORT, SearchEffort, Tolerance
from builders.function_words.candidates import FLAGS, Swap, swap_candidates
from builders.function_words.options import (
    AcceptabilityOptions,
    LongSentenceOptions,
    SentenceEndOptions,
    WhWordOptions,
)
from builders.function_words.pairs import TOLERANCE, SwapCandidates, choose_pairs
from builders.function_words.sentence_ends import FREE, sentence_end_candidates
from builders.function_words.swaps import coordination_swaps, definiteness_swaps, wh_swaps
from builders.function_words.tokens import (
    TaggedTexts,
    natural_sentences,
    open_corpora,
    tagged_sentences,
)
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
LONGER = SearchEffort(4500, 0.007)
"""How long to search if there are few words."""


DECLARED: dict[str, Any] = {
    "open": open_corpora,
    "question_fields": QUESTION_FIELDS,
    "choice_fields": ("text",),
    "setup": ACCEPTABILITY,
    "paper": "function_words",
    "variants": CLOZES,
    "flags": FLAGS,
}


@probe("fw_wh_words", options=WhWordOptions, **DECLARED)
def fw_wh_words(corpus: TextCorpus, options: WhWordOptions, rng: RandomGenerator) -> Plan:
    """Is a sentence acceptable, or was its who, what, where, when, why or how exchanged?"""
    tolerance = {**TOLERANCE, "behind": Tolerance(2, 1)}
    return swapped("fw_wh_words", wh_swaps, corpus, options, rng, tolerance)


@probe("fw_definiteness", options=LongSentenceOptions, **DECLARED)
def fw_definiteness(corpus: TextCorpus, options: LongSentenceOptions, rng: RandomGenerator) -> Plan:
    """Is a sentence acceptable, or were its articles exchanged, "the" for "a" or "an"?"""
    return swapped("fw_definiteness", definiteness_swaps, corpus, options, rng, FEW_WORDS, LONGER)


@probe("fw_coordination", options=LongSentenceOptions, **DECLARED)
def fw_coordination(corpus: TextCorpus, options: LongSentenceOptions, rng: RandomGenerator) -> Plan:
    """Is a sentence acceptable, or was its and, or or but exchanged?"""
    return swapped("fw_coordination", coordination_swaps, corpus, options, rng, FEW_WORDS, LONGER)


MOVED = (
    "What is between the right and the wrong end may belong to either sentence: an adverb, a "
    "prepositional phrase, a clause."
)


@probe(
    "fw_eos",
    options=SentenceEndOptions,
    **{**DECLARED, "variants": MINIMAL_PAIRS, "flags": {FREE: MOVED}},
)
def fw_eos(corpus: TextCorpus, options: SentenceEndOptions, rng: RandomGenerator) -> Plan:
    """Do two sentences, without punctuation and capitals, end where they are parted?"""

    def candidates(tagged: TaggedTexts, allowed: Bools) -> SwapCandidates:
        return sentence_end_candidates(tagged, corpus, allowed, options.sigma, rng.child("ends"))

    tolerance = {**TOLERANCE, "before": Tolerance(2, 1)}
    return _planned("fw_eos", candidates, corpus, options, rng, tolerance)


def swapped(
    name: str, find: Finder, corpus: TextCorpus, options: AcceptabilityOptions, *rest: Any
) -> Plan:
    """Plan a probe whose sentences are changed by swapping words; ``rest`` as for `_planned`."""

    def candidates(tagged: TaggedTexts, allowed: Bools) -> SwapCandidates:
        return swap_candidates(tagged, list(find(tagged, allowed)))

    return _planned(name, candidates, corpus, options, *rest)


def _planned(
    name: str,
    candidates: Callable[[TaggedTexts, Bools], SwapCandidates],
    corpus: TextCorpus,
    options: AcceptabilityOptions,
    rng: RandomGenerator,
    tolerance: Mapping[str, Tolerance] = TOLERANCE,
    effort: SearchEffort = EFFORT,
) -> Plan:
    """Plan a probe of pairs among ``candidates``, given the sentences and which may be changed."""
    dropped = DropLog()
    tagged = tagged_sentences(corpus)
    natural = natural_sentences(
        tagged, options.min_tokens, options.max_tokens, dropped, screen=options.screen
    )
    found = candidates(tagged, natural)
    lots = rng.child("pairs")
    chosen = choose_pairs(found, corpus, options, dropped, lots, tolerance, effort)
    return acceptability_plan(name, chosen, corpus, options, rng.child("plan"))
