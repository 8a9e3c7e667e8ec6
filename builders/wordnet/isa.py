"""The probes wordnet_hypernymy and wordnet_hyponymy: kinds of things, upwards and downwards.

After Richardson & Sabharwal, "What Does My QA Model Know?" (TACL 2020, section 3). See
docs/probes/wordnet.md, and docs/methods.md for the differences.
"""

from __future__ import annotations

import numpy as np

from builders.engine.draw.balanced import first_of_each
from builders.engine.draw.families import Truth
from builders.engine.plan import Plan
from builders.engine.probe import probe
from builders.engine.rows import Asking
from builders.wordnet.flags import ISA_FLAGS, isa_flags
from builders.wordnet.options import ABSTRACTIONS, HypernymyOptions, HyponymyOptions, IsaOptions
from builders.wordnet.planning import IN_CONTEXT, PROBE_OF, WordNetPlanner, in_contexts, stop_list
from builders.wordnet.source import repeated
from builders.wordnet.synsets import alike_in_any, contexts_of, of_parts_of_speech, path_facts
from builders.wordnet.truths import true_of_namesakes
from kb_cache.graph import Graph
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import contains, lines_of, occurrences, sorted_unique
from kbprobe.rng import RandomGenerator


@probe("wordnet_hypernymy", options=HypernymyOptions, flags=ISA_FLAGS, **IN_CONTEXT)
def wordnet_hypernymy(wordnet: WordNet, options: HypernymyOptions, rng: RandomGenerator) -> Plan:
    """Which of five concepts is the word, as used in a sentence, a kind of?"""
    return _isa_plan(wordnet, options, rng, wordnet.hypernyms, "hypernym")


@probe(
    "wordnet_hyponymy",
    options=HyponymyOptions,
    flags=ISA_FLAGS,
    **{**IN_CONTEXT, "quick": {"max_hops": 1}},
)
def wordnet_hyponymy(wordnet: WordNet, options: HyponymyOptions, rng: RandomGenerator) -> Plan:
    """Which of five concepts is a specific kind of the word, as used in a sentence?"""
    return _isa_plan(wordnet, options, rng, wordnet.hyponyms, "hyponym")


def _isa_plan(
    wordnet: WordNet, options: IsaOptions, rng: RandomGenerator, graph: Graph, relation: str
) -> Plan:
    size, structure = len(wordnet), wordnet.structure
    asked = of_parts_of_speech(wordnet, options.pos)
    contexts = contexts_of(wordnet, asked)
    concepts = sorted_unique(contexts.concept)
    walk = graph.walk(concepts, options.max_hops)
    concept, gold, hops = concepts[walk.source], walk.node, walk.hops
    down = relation == "hyponym"
    isa = wordnet.isa.reversed if down else wordnet.isa
    is_true = isa.walk(concepts)
    truth = Truth.of(concepts, is_true.source, is_true.node, alike_in_any(wordnet))
    planner = WordNetPlanner(wordnet, options, rng)
    dropped = planner.dropped

    trivial = np.isin(gold, stop_list(wordnet, options.stop_golds, ABSTRACTIONS))
    tests = {
        "gold shares a lemma or gloss with the concept": contains(
            truth.alike, concept * size + gold
        ),
        "gold is on the stop list or too near its root": trivial | planner.too_shallow(gold),
        "no word for the gold in the language": ~wordnet.has_words[gold],
    }
    concept, gold, hops = lines_of((concept, gold, hops), dropped.sift(tests))
    dropped.require(concept.size)
    names = wordnet.synsets["name"].combine_chunks()
    facts = path_facts(graph, concept, gold, hops, relation, names)
    close = options.matched
    truth = truth.and_true(true_of_namesakes(wordnet, concepts, isa, sorted_unique(gold), close))
    flags = isa_flags(wordnet, facts, concept, gold, PROBE_OF[relation])
    # Each gold of a concept is asked for in every context of the concept.
    fact, question = occurrences(contexts.concept, concept)
    asking = Asking(question, fact, concept[fact], gold[fact], hops[fact], flags.take(fact))
    questions = in_contexts(wordnet, contexts)
    asking = planner.askable(relation, asking, questions)
    if structure is not wordnet:
        alone = np.flatnonzero(contexts.example[asking.question] < 0)
        same = np.zeros(asking.fact.size, dtype=np.bool_)
        of = asking.fact[alone]
        same[alone] = repeated(wordnet, concept[of], gold[of], 0)
        asking = asking.take(dropped.drop("another question reads the same", same))
    if isinstance(options, HyponymyOptions) and options.golds_per_hop:
        pairs, line = np.unique(asking.fact, return_inverse=True)
        cell = concept[pairs] * (options.max_hops + 1) + hops[pairs]
        first = first_of_each(cell, options.golds_per_hop, rng.child("golds"), gold[pairs])
        asking = asking.take(dropped.keep("beyond --golds-per-hop", first)[line])
    return planner.of_questions(relation, asking, questions, facts, truth)
