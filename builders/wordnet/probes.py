"""The WordNet probes: what a word means in its sentence, and what it is related to.

Four probes over synsets after Richardson & Sabharwal, "What Does My QA Model Know?" (TACL 2020,
section 3), and two over WordNet's other relations.
See docs/probes/wordnet.md, and docs/methods.md for the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from builders.engine.draw.balanced import first_of_each
from builders.engine.draw.families import Truth
from builders.engine.drops import DropLog
from builders.engine.plan import Facts, Flags, Plan, Questions
from builders.engine.probe import probe
from builders.engine.rows import Asking, draw_plan
from builders.relations import (
    NONE,
    QUESTION_FIELDS,
    Edges,
    looks_alike,
    relation_plan,
    union,
)
from builders.wordnet.content import content_column, is_common
from builders.wordnet.families import wordnet_families, wordnet_oracles
from builders.wordnet.flags import ISA_FLAGS, isa_flags
from builders.wordnet.neighbourhoods import territory
from builders.wordnet.options import (
    ABSTRACTIONS,
    ENGLISH,
    STOP_CONCEPTS,
    AntonymyOptions,
    DefinitionsOptions,
    HypernymyOptions,
    HyponymyOptions,
    IsaOptions,
    MeronymyOptions,
    SynonymyOptions,
    WordNetOptions,
)
from builders.wordnet.source import (
    asked_edges,
    edges_in_language,
    familiar,
    has_glosses,
    named_first,
    offensive_in_any,
    repeated,
    require_enough,
    synset_source,
)
from builders.wordnet.synsets import (
    KINDS,
    Contexts,
    alike_in_any,
    contexts_of,
    first_words,
    generality,
    gives_away,
    has_name,
    known_synsets,
    near,
    nodes_of,
    of_parts_of_speech,
    other_words,
    path_facts,
    questions_by_gloss,
    questions_by_word,
    questions_in_context,
    same_gloss,
    shown_glosses,
    text_facts,
    words_at,
    zipf_of,
)
from builders.wordnet.truths import (
    OPPOSITE_FLAGS,
    PART_FLAGS,
    arguable_distractors,
    near_opposites,
    opposite_flags,
    part_flags,
    parts_without_edge,
    possible_opposites,
    possible_parts,
    true_of_namesakes,
)
from kb_cache.graph import Graph
from kb_cache.omw.load import load_in_language, load_parallel
from kb_cache.wordnet.load import load_wordnet_once
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Ints, contains, lines_of, occurrences, sorted_unique
from kbprobe.columns import to_numpy
from kbprobe.errors import UsageError
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

_load_in_language = lru_cache(maxsize=4)(load_in_language)
_load_parallel = lru_cache(maxsize=4)(load_parallel)

PROBE_OF = {
    "definition": "definitions",
    "hypernym": "hypernymy",
    "hyponym": "hyponymy",
    "synonym": "synonymy",
}
"""The probe that asks for each relation, by its name in the judged models."""

FEWEST_LETTERS = 3
"""Minimum length of a choice: "K" for potassium is too short."""


def open_wordnet(options: WordNetOptions) -> WordNet:
    """Load the WordNet named by the options, once per process."""
    if options.parallel:
        return _load_parallel(options.languages, options.wordnet)
    wordnet = load_wordnet_once(options.wordnet)
    if options.language == wordnet.language:
        return wordnet
    if options.language == ENGLISH:
        raise UsageError(
            f"the words of {wordnet.name} are not English: add --language {wordnet.language}"
        )
    return _load_in_language(options.language, options.wordnet)


RELATION: dict[str, Any] = {
    "open": open_wordnet,
    "question_fields": QUESTION_FIELDS,
    "choice_fields": ("lemma", "others", "lemmas", "pos", "gloss"),
    "controls": (NO_LANGUAGE, PERTURBED),
}
IN_CONTEXT: dict[str, Any] = {
    **RELATION,
    "question_fields": ("sentence", "kind", "word", "lemma", "synonyms", "gloss", "pos"),
    "paper": "wordnetqa",
    "quick": {"pos": ("verb",)},
}
BY_GLOSS: dict[str, Any] = {**IN_CONTEXT, "question_fields": ("word", "gloss", "pos")}


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
    contexts = contexts_of(wordnet, asked, options.max_contexts, rng)
    questions = _in_contexts(wordnet, contexts)
    return _self_plan(wordnet, options, rng, "definition", contexts.concept, questions)


@probe("wordnet_synonymy", options=SynonymyOptions, **BY_GLOSS)
def wordnet_synonymy(wordnet: WordNet, options: SynonymyOptions, rng: RandomGenerator) -> Plan:
    """Which of five sets of words fits a definition?"""
    if wordnet.structure is not wordnet:
        return _other_words_plan(wordnet, options, rng)
    asked = of_parts_of_speech(wordnet, options.pos)
    asked &= np.diff(wordnet.sense_start) >= options.min_lemmas
    if options.common_only:
        asked &= is_common(wordnet)
    nodes, dropped = np.flatnonzero(asked), DropLog()
    named = has_name(wordnet)[nodes]
    room = options.name_share * np.count_nonzero(~named) / max(1 - options.name_share, 1e-9)
    order = np.lexsort((rng.child("names").bits(nodes), ~named))
    keep = ~named
    keep[order[: min(int(room), np.count_nonzero(named))]] = True
    nodes = nodes[dropped.keep("a name, beyond --name-share", keep)]
    questions = {wordnet: questions_by_gloss(wordnet, nodes)}
    return _self_plan(wordnet, options, rng, "synonym", nodes, questions, dropped)


@probe("wordnet_meronymy", options=MeronymyOptions, flags=PART_FLAGS, **RELATION)
def wordnet_meronymy(wordnet: WordNet, options: MeronymyOptions, rng: RandomGenerator) -> Plan:
    """Which of five concepts is a part, a member or a substance of another?"""
    edges: dict[str, Edges] = {
        name: asked_edges(wordnet, options, f"{name}_meronym") for name in options.relations
    }
    if options.common_only:
        kept = is_common(wordnet)
        edges = {name: (one[kept[one]], gold[kept[one]]) for name, (one, gold) in edges.items()}
    more: dict[str, Any] = {"flags": partial(part_flags, wordnet)}
    more |= {"most_golds": options.golds_per_concept}
    more |= {"stop": _named(wordnet, options.stop_concepts, STOP_CONCEPTS)}
    more |= {"maybe": partial(parts_without_edge, wordnet)}
    return _edges_plan(wordnet, options, rng, edges, possible_parts, **more)


@probe("wordnet_antonymy", options=AntonymyOptions, flags=OPPOSITE_FLAGS, **RELATION)
def wordnet_antonymy(wordnet: WordNet, options: AntonymyOptions, rng: RandomGenerator) -> Plan:
    """Which of five words means the opposite of another, in a given sense?"""
    edges: dict[str, Edges] = {"antonym": named_first(wordnet, options, "antonym")}
    more: dict[str, Any] = {"flags": partial(opposite_flags, wordnet)}
    more |= {"maybe": partial(near_opposites, wordnet)}
    return _edges_plan(wordnet, options, rng, edges, possible_opposites, **more)


def _edges_plan(
    wordnet: WordNet,
    options: WordNetOptions,
    rng: RandomGenerator,
    edges: Mapping[str, Edges],
    true_of: Callable[[WordNet, Ints], Graph],
    **more: Any,
) -> Plan:
    """Plan a probe that asks about edges; ``more`` are arguments of `relation_plan`.

    ``true_of`` returns the nodes that must not be distractors in questions about some synsets.
    """
    dropped = DropLog()
    edges = edges_in_language(wordnet, options, edges, dropped)
    source = synset_source(wordnet, options)
    true = true_of(wordnet, sorted_unique(np.concatenate([asked for asked, _ in edges.values()])))
    plan = relation_plan(source, edges, true, options, rng, dropped, options.min_zipf, **more)
    return _readable_in_all(wordnet, _described(wordnet, plan, true), _first_word)


def _other_words_plan(wordnet: WordNet, options: SynonymyOptions, rng: RandomGenerator) -> Plan:
    """Plan a probe that asks for the other words of a word's synset.

    Lexicons of languages other than English define few synsets.
    """
    asked = of_parts_of_speech(wordnet, options.pos)
    every = int(np.count_nonzero(asked))
    least = max(2, options.min_lemmas)
    for one in wordnet.languages:
        asked &= np.diff(one.sense_start) >= least
    if options.common_only:
        asked &= is_common(wordnet)
    nodes = np.flatnonzero(asked)
    require_enough(wordnet, nodes.size, every, f"synsets with {least} words or more")
    alike, short = np.zeros((2, nodes.size), dtype=np.bool_)
    for one in wordnet.languages:
        first = first_words(one).take(pa.array(nodes)).to_pylist()
        others = other_words(one, nodes, one.sense_start[nodes].astype(np.int64)).to_pylist()
        pairs = zip(first, others, strict=True)
        alike |= [any(looks_alike(word, other) for other in more) for word, more in pairs]
        short |= [len(more[0]) < FEWEST_LETTERS for more in others]
    dropped = DropLog()
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
    questions = {one: questions_by_word(one, nodes, glosses) for one in wordnet.languages}
    return _self_plan(wordnet, options, rng, "synonym", nodes, questions, dropped)


def _isa_plan(
    wordnet: WordNet, options: IsaOptions, rng: RandomGenerator, graph: Graph, relation: str
) -> Plan:
    size, structure = len(wordnet), wordnet.structure
    asked = of_parts_of_speech(wordnet, options.pos)
    contexts = contexts_of(wordnet, asked, options.max_contexts, rng)
    concepts = sorted_unique(contexts.concept)
    walk = graph.walk(concepts, options.max_hops)
    concept, gold, hops = concepts[walk.source], walk.node, walk.hops
    down = relation == "hyponym"
    isa = wordnet.isa.reversed if down else wordnet.isa
    is_true = isa.walk(concepts)
    truth = Truth.of(concepts, is_true.source, is_true.node, alike_in_any(wordnet))
    dropped = DropLog()

    trivial = np.isin(gold, _named(wordnet, options.stop_golds, ABSTRACTIONS))
    tests = {
        "gold shares a lemma or gloss with the concept": contains(
            truth.alike, concept * size + gold
        ),
        "gold is on the stop list or too near its root": trivial
        | _too_shallow(wordnet, options, gold),
        "no word for the gold in the language": ~wordnet.has_words[gold],
    }
    concept, gold, hops = lines_of((concept, gold, hops), dropped.sift(tests))
    dropped.require(concept.size)
    names = wordnet.synsets["name"].combine_chunks()
    facts = path_facts(graph, concept, gold, hops, relation, names)
    truth = truth.and_true(true_of_namesakes(wordnet, concepts, isa, sorted_unique(gold)))
    flags = isa_flags(wordnet, facts, concept, gold, PROBE_OF[relation])
    # Each gold of a concept is asked for in every context of the concept.
    fact, question = occurrences(contexts.concept, concept)
    asking = Asking(question, fact, concept[fact], gold[fact], hops[fact], flags.take(fact))
    questions = _in_contexts(wordnet, contexts)
    asking = _askable(options, relation, asking, questions, dropped)
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
    return _plan(wordnet, options, rng, relation, asking, questions, facts, truth, dropped)


def _in_contexts(wordnet: WordNet, contexts: Contexts) -> dict[WordNet, Questions]:
    """Return the questions in each language; of several, each has senses of its own."""
    if len(wordnet.languages) == 1:
        return {wordnet: questions_in_context(wordnet, contexts)}
    senses = {one: one.sense_start[contexts.concept] for one in wordnet.languages}
    return {
        one: questions_in_context(one, contexts._replace(sense=own)) for one, own in senses.items()
    }


def _self_plan(
    wordnet: WordNet,
    options: WordNetOptions,
    rng: RandomGenerator,
    relation: str,
    concept: Ints,
    questions: Mapping[WordNet, Questions],
    dropped: DropLog | None = None,
) -> Plan:
    """Plan a probe whose gold is the concept itself (its gloss, its lemmas)."""
    nodes = sorted_unique(concept)
    facts = text_facts(wordnet, nodes, lemmas=relation == "synonym")
    line, fact = np.arange(concept.size, dtype=np.int64), np.searchsorted(nodes, concept)
    none = Flags.none(concept.size)
    asking = Asking(line, fact, concept, concept, np.zeros_like(concept), none)
    dropped = DropLog() if dropped is None else dropped
    shallow = _too_shallow(wordnet, options, concept)
    asking = asking.take(dropped.drop("gold is too near its root", shallow))
    # Definitions of a word's other senses may be choices: telling them apart is the task.
    same = same_gloss if relation == "definition" else alike_in_any
    truth = Truth(len(wordnet), NONE, union(same(wordnet), near(wordnet)).keys)
    asking = _askable(options, relation, asking, questions, dropped)
    return _plan(wordnet, options, rng, relation, asking, questions, facts, truth, dropped)


def _askable(
    options: WordNetOptions,
    relation: str,
    asking: Asking,
    questions: Mapping[WordNet, Questions],
    dropped: DropLog,
) -> Asking:
    """Leave out questions outside the tier, rare golds, and golds that are given away.

    ``questions`` are those of each language; what is unsuitable in one is left out of all.
    """
    asking = asking.of_tier(options.tier, dropped)
    if options.min_zipf:
        each = [zipf_of(one, asking.gold) >= options.min_zipf for one in questions]
        asking = asking.take(dropped.keep("gold is too rare a word", np.all(each, axis=0)))
    if options.stem_overlap == "drop":
        each = [
            gives_away(
                one,
                asked,
                asking.question,
                asking.gold,
                names_shown=relation != "definition",
                gloss_shown=options.shows_glosses,
                asked_gloss_shown=relation == "hyponym",
            )
            for one, asked in questions.items()
        ]
        keep = dropped.drop("a shared word gives the gold away", np.any(each, axis=0))
        asking = asking.take(keep)
    return asking


def _plan(
    wordnet: WordNet,
    options: WordNetOptions,
    rng: RandomGenerator,
    relation: str,
    asking: Asking,
    questions: Mapping[WordNet, Questions],
    facts: Facts,
    truth: Truth,
    dropped: DropLog,
) -> Plan:
    """Split and cap the questions, and draw distractors for them."""
    shown = _shown(wordnet, questions)
    word: Ints | None = None
    if "surface_form" in shown.columns and relation == "definition":
        word = to_numpy(shown.fields["lemma"].dictionary_encode().indices).astype(np.int64)
    reads = _READS.get(relation, _first_word)
    places = territory(wordnet.structure, options.split_shares, rng.seed)
    plan = draw_plan(
        asking,
        lambda asked: wordnet_families(
            wordnet, options, asked, None if word is None else word[asked.question]
        ),
        questions=shown,
        choices=nodes_of(wordnet, generality(wordnet), options.shows_glosses),
        facts=facts,
        relation=relation,
        truth=truth,
        split=places.of_both(asking),
        part=places.part,
        kinds=KINDS[wordnet.pos_codes],
        # One language decides for all, so that they ask the same questions.
        reads=reads(wordnet.languages[0]),
        offensive=offensive_in_any(wordnet),
        arguable=partial(arguable_distractors, wordnet.structure, PROBE_OF[relation]),
        options=options,
        rng=rng,
        dropped=dropped,
    )
    answers = {"hypernym": wordnet.isa, "hyponym": wordnet.isa.reversed}.get(relation)
    return _readable_in_all(wordnet, _described(wordnet, plan, answers), reads)


def _described(wordnet: WordNet, plan: Plan, true_of: Graph | None) -> Plan:
    """Add the content of a plan's questions, and oracles."""
    columns = {**plan.questions.columns, "content": content_column(wordnet, plan)}
    questions = replace(plan.questions, columns=columns)
    return replace(plan, questions=questions, oracles=partial(wordnet_oracles, wordnet, true_of))


def _shown(wordnet: WordNet, questions: Mapping[WordNet, Questions]) -> Questions:
    """Return the questions in the language in which ``wordnet`` shows words."""
    return next(asked for one, asked in questions.items() if one.language == wordnet.language)


def _readable_in_all(wordnet: WordNet, plan: Plan, reads: Callable[[WordNet], Ints]) -> Plan:
    """Leave out of all languages what one might leave out: two identically worded choices.

    ``reads`` returns a number for the text of every synset as a choice.
    """
    if len(wordnet.languages) == 1:
        return plan
    texts = [np.sort(reads(one)[plan.nodes], axis=1) for one in wordnet.languages]
    same = np.any([(text[:, 1:] == text[:, :-1]).any(axis=1) for text in texts], axis=0)
    return plan.keep("two choices read the same in a language", ~same)


def _gloss(wordnet: WordNet) -> Ints:
    return to_numpy(shown_glosses(wordnet).dictionary_encode().indices).astype(np.int64)


_first_word = partial(words_at, place=0)
_READS: Mapping[str, Callable[[WordNet], Ints]] = {
    "definition": _gloss,
    "synonym": partial(words_at, place=1),
}
"""What choices of a relation show, as numbers for the texts of all synsets; else the first word."""


def _named(wordnet: WordNet, names: Sequence[str], default: Sequence[str]) -> Ints:
    """Return the ids of a stop list; the default list's names may be missing in another WordNet."""
    if names == default:
        return known_synsets(wordnet, names)
    return np.array([wordnet.synset_id(name) for name in names], dtype=np.int64)


def _too_shallow(wordnet: WordNet, options: WordNetOptions, gold: Ints) -> Bools:
    if options.min_depth == 0:
        return np.zeros(gold.size, dtype=np.bool_)
    return np.asarray(wordnet.isa.depths()[gold] < options.min_depth)
