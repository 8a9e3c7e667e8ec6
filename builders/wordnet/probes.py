"""WordNetQA: what a word means in its sentence, what it is a kind of, and what is a kind of it.

Four probes over WordNet's synsets after Richardson & Sabharwal, "What Does My QA Model Know?"
(TACL 2020, section 3). Where ours differ, and why: docs/probes/wordnet.md.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from builders.engine.draw.balanced import first_of_each
from builders.engine.draw.families import Truth
from builders.engine.drops import DropLog
from builders.engine.plan import Facts, Plan, Questions
from builders.engine.probe import probe
from builders.engine.rows import Asking, draw_plan
from builders.wordnet.families import wordnet_families
from builders.wordnet.options import (
    ABSTRACTIONS,
    KIND_NAMES,
    DefinitionsOptions,
    HypernymyOptions,
    HyponymyOptions,
    IsaOptions,
    SynonymyOptions,
    WordNetOptions,
)
from kb_cache.graph import Graph
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Ints, contains, ragged_ranges, sorted_unique
from kbprobe.columns import to_numpy
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.wordnet.synsets import Contexts


_load = lru_cache(maxsize=2)(load_wordnet)


def open_wordnet(options: WordNetOptions) -> WordNet:
    """Load the WordNet that the options name, once for all the probes of a process."""
    return _load(options.wordnet)


CHOICE_FIELDS = ("lemma", "others", "lemmas", "pos", "gloss")
IN_CONTEXT: dict[str, Any] = {
    "open": open_wordnet,
    "question_fields": ("sentence", "word", "gloss", "pos"),
    "choice_fields": CHOICE_FIELDS,
    "controls": (NO_LANGUAGE, PERTURBED),
    "paper": "wordnetqa",
    "quick": {"pos": ("verb",)},
}
BY_GLOSS: dict[str, Any] = {**IN_CONTEXT, "question_fields": ("gloss", "pos")}


@probe("wordnet_hypernymy", options=HypernymyOptions, **IN_CONTEXT)
def wordnet_hypernymy(wordnet: WordNet, options: HypernymyOptions, rng: RandomGenerator) -> Plan:
    """Which of five concepts is the word, as used in a sentence, a kind of?"""
    return _isa_plan(wordnet, options, rng, wordnet.hypernyms, "hypernym")


@probe("wordnet_hyponymy", options=HyponymyOptions, **IN_CONTEXT)
def wordnet_hyponymy(wordnet: WordNet, options: HyponymyOptions, rng: RandomGenerator) -> Plan:
    """Which of five concepts is a specific kind of the word, as used in a sentence?"""
    return _isa_plan(wordnet, options, rng, wordnet.hyponyms, "hyponym")


@probe("wordnet_definitions", options=DefinitionsOptions, **IN_CONTEXT)
def wordnet_definitions(
    wordnet: WordNet, options: DefinitionsOptions, rng: RandomGenerator
) -> Plan:
    """Which of five definitions fits the word, as used in a sentence?"""
    from builders.wordnet.synsets import contexts_of, questions_in_context, text_facts

    contexts = contexts_of(wordnet, _asked_about(wordnet, options), options.max_contexts, rng)
    nodes = sorted_unique(contexts.concept)
    asking = Asking(
        np.arange(contexts.concept.size, dtype=np.int64),
        np.searchsorted(nodes, contexts.concept),
        contexts.concept,
        contexts.concept,
        np.zeros_like(contexts.concept),
    )
    questions = questions_in_context(wordnet, contexts)
    return _self_plan(
        wordnet, options, rng, "definition", asking, questions, text_facts(wordnet, nodes, False)
    )


@probe("wordnet_synonymy", options=SynonymyOptions, **BY_GLOSS)
def wordnet_synonymy(wordnet: WordNet, options: SynonymyOptions, rng: RandomGenerator) -> Plan:
    """Which of five sets of words fits a definition?"""
    from builders.wordnet.synsets import questions_by_gloss, text_facts

    asked = _asked_about(wordnet, options)
    asked &= np.diff(wordnet.sense_start) >= options.min_lemmas
    if options.require_example:
        asked &= np.diff(wordnet.example_start) > 0
    nodes = np.flatnonzero(asked)
    line = np.arange(nodes.size, dtype=np.int64)
    asking = Asking(line, line, nodes, nodes, np.zeros_like(nodes))
    return _self_plan(
        wordnet,
        options,
        rng,
        "synonym",
        asking,
        questions_by_gloss(wordnet, nodes),
        text_facts(wordnet, nodes, True),
    )


def _asked_about(wordnet: WordNet, options: WordNetOptions) -> Bools:
    from builders.wordnet.synsets import KINDS

    wanted = [KIND_NAMES.index(name) for name in options.pos]
    return np.isin(KINDS[wordnet.pos_codes], wanted)


def _isa_plan(
    wordnet: WordNet, options: IsaOptions, rng: RandomGenerator, graph: Graph, relation: str
) -> Plan:
    from builders.wordnet.synsets import (
        alike,
        contexts_of,
        keys_of,
        path_facts,
        questions_in_context,
    )

    size = len(wordnet)
    contexts = contexts_of(wordnet, _asked_about(wordnet, options), options.max_contexts, rng)
    concepts = sorted_unique(contexts.concept)
    walk = graph.walk(concepts, options.max_hops)
    concept, gold, hops = concepts[walk.source], walk.node, walk.hops
    look_alike = alike(wordnet)
    dropped = DropLog()

    same_word = contains(keys_of(look_alike), concept * size + gold)
    keep = dropped.drop("gold shares a lemma or gloss with the concept", same_word)
    trivial = np.isin(gold, _stopped(wordnet, options)) | _too_shallow(wordnet, options, gold)
    keep &= dropped.drop("gold is on the stop list or too near its root", trivial & keep)
    concept, gold, hops = concept[keep], gold[keep], hops[keep]
    if isinstance(options, HyponymyOptions) and options.golds_per_hop:
        cell = concept * (options.max_hops + 1) + hops
        first = first_of_each(cell, options.golds_per_hop, rng.child("golds"), gold)
        keep = dropped.keep("beyond --golds-per-hop", first)
        concept, gold, hops = concept[keep], gold[keep], hops[keep]

    dropped.require(concept.size)
    facts = path_facts(
        graph, concept, gold, hops, relation, wordnet.synsets["name"].combine_chunks()
    )
    asking = _in_every_context(contexts, concept, gold, hops)
    true_nodes = (wordnet.isa if relation == "hypernym" else wordnet.isa.reversed).walk(concepts)
    truth = _truth(concepts[true_nodes.source], true_nodes.node, concepts, look_alike)
    return _plan(
        wordnet,
        options,
        rng,
        relation,
        asking,
        questions_in_context(wordnet, contexts),
        facts,
        truth,
        dropped,
    )


def _self_plan(
    wordnet: WordNet,
    options: WordNetOptions,
    rng: RandomGenerator,
    relation: str,
    asking: Asking,
    questions: Questions,
    facts: Facts,
) -> Plan:
    """Plan a probe whose gold is the concept itself (its gloss, its lemmas)."""
    from builders.wordnet.synsets import alike, keys_of

    dropped = DropLog()
    deep = dropped.drop("gold is too near its root", _too_shallow(wordnet, options, asking.gold))
    empty = np.empty(0, dtype=np.int64)
    truth = Truth(len(wordnet), empty, keys_of(alike(wordnet)))
    asking = asking.take(deep)
    return _plan(wordnet, options, rng, relation, asking, questions, facts, truth, dropped)


def _plan(
    wordnet: WordNet,
    options: WordNetOptions,
    rng: RandomGenerator,
    relation: str,
    asking: Asking,
    questions: Questions,
    facts: Facts,
    truth: Truth,
    dropped: DropLog,
) -> Plan:
    """Filter, split and cap the questions, then ask each with every family."""
    from builders.wordnet.synsets import KINDS, generality, gives_away, nodes_of

    kinds = KINDS[wordnet.pos_codes]
    choices = nodes_of(wordnet, generality(wordnet))
    if options.min_zipf and choices.frequency:
        golds, local = np.unique(asking.gold, return_inverse=True)
        frequent = (choices.frequency(golds) >= options.min_zipf)[local]
        asking = asking.take(dropped.keep("gold is too rare a word", frequent))
    if options.stem_overlap == "drop":
        given_away = gives_away(
            wordnet,
            questions,
            asking.question,
            asking.gold,
            names_shown=relation != "definition",
            gloss_shown=relation != "synonym",
        )
        asking = asking.take(dropped.drop("a shared word gives the gold away", given_away))
    return draw_plan(
        asking,
        lambda asked: wordnet_families(wordnet, options, asked),
        questions=questions,
        choices=choices,
        facts=facts,
        relation=relation,
        truth=truth,
        kinds=kinds,
        options=options,
        rng=rng,
        dropped=dropped,
    )


def _in_every_context(contexts: Contexts, concept: Ints, gold: Ints, hops: Ints) -> Asking:
    """Pair every (concept, gold) with every context of the concept."""
    order = np.argsort(contexts.concept, kind="stable")
    owner = contexts.concept[order]
    start = np.searchsorted(owner, concept, side="left")
    count = np.searchsorted(owner, concept, side="right") - start
    fact = np.repeat(np.arange(concept.size, dtype=np.int64), count)
    question = order[ragged_ranges(start, count)]
    return Asking(question, fact, concept[fact], gold[fact], hops[fact])


def _truth(concept: Ints, node: Ints, concepts: Ints, look_alike: Graph) -> Truth:
    """True are the nodes related to a concept, the concept, and what shares their lemmas."""
    from builders.wordnet.synsets import keys_of

    size = len(look_alike)
    owner, member = np.concatenate([concept, concepts]), np.concatenate([node, concepts])
    position, like = look_alike.expand(member)
    keys = np.concatenate([owner * size + member, owner[position] * size + like])
    return Truth(size, sorted_unique(keys), keys_of(look_alike))


def _stopped(wordnet: WordNet, options: IsaOptions) -> Ints:
    """Ids of the stop list; the default list's names may be missing in another WordNet."""
    if options.stop_golds != ABSTRACTIONS:
        return np.array([wordnet.synset_id(name) for name in options.stop_golds], dtype=np.int64)
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.index_in(pa.array(list(ABSTRACTIONS)), wordnet.synsets["name"].combine_chunks())
    return to_numpy(found.drop_null()).astype(np.int64)


def _too_shallow(wordnet: WordNet, options: WordNetOptions, gold: Ints) -> Bools:
    if options.min_depth == 0:
        return np.zeros(gold.size, dtype=np.bool_)
    return np.asarray(wordnet.isa.depths()[gold] < options.min_depth)
