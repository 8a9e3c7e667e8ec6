"""DictionaryQA: which definition of a dictionary fits a word in its usage or quotation?

A probe over GCIDE after Richardson & Sabharwal, "What Does My QA Model Know?" (TACL 2020,
section 3). Where ours differs, and why: docs/probes/dictionary_wordsense.md.
"""

from __future__ import annotations

from builders.dictionary.options import WordSenseOptions
from builders.engine.plan import Plan
from builders.engine.probe import probe
from kb_cache.gcide.load import load_gcide
from kb_cache.gcide.types import Gcide
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator


def open_gcide(options: WordSenseOptions) -> Gcide:
    """Load the GCIDE that the options name."""
    return load_gcide(options.gcide or None)


@probe(
    "dictionary_wordsense",
    options=WordSenseOptions,
    open=open_gcide,
    question_fields=("sentence", "word", "headword", "pos"),
    choice_fields=("definition", "headword", "pos"),
    controls=(NO_LANGUAGE, PERTURBED),
    paper="wordnetqa",
    quick={"pos": ("verb",)},
)
def dictionary_wordsense(gcide: Gcide, options: WordSenseOptions, rng: RandomGenerator) -> Plan:
    """Which definition of a dictionary fits a word in its usage or quotation?"""
    from builders.dictionary.planning import plan_word_senses

    return plan_word_senses(gcide, options, rng)
