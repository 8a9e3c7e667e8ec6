"""What the WordNet probes share: opening a WordNet, and plans from questions about synsets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from builders.engine.draw.families import Truth
from builders.engine.drops import DropLog
from builders.engine.plan import Facts, Flags, Plan, Questions
from builders.engine.rows import Asking, NodePools, QuestionSet, Territory, draw_plan
from builders.relations import (
    NONE,
    QUESTION_FIELDS,
    AskedEdges,
    relation_plan,
    union,
)
from builders.wordnet.content import content_column
from builders.wordnet.families import wordnet_families, wordnet_oracles
from builders.wordnet.likeness import compared_texts
from builders.wordnet.neighbourhoods import territory
from builders.wordnet.options import (
    ENGLISH,
    WordNetOptions,
)
from builders.wordnet.source import (
    edges_in_language,
    offensive_in_any,
    synset_source,
)
from builders.wordnet.synsets import (
    KINDS,
    Contexts,
    alike_in_any,
    generality,
    gives_away,
    known_synsets,
    near,
    nodes_of,
    questions_in_context,
    same_gloss,
    shown_glosses,
    text_facts,
    words_at,
    zipf_of,
)
from builders.wordnet.truths import (
    arguable_distractors,
)
from kb_cache.graph import Graph
from kb_cache.wordnet.load import load_wordnet_once
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Ints, sorted_unique
from kbprobe.columns import to_numpy
from kbprobe.errors import UsageError
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

PROBE_OF = {
    "definition": "definitions",
    "hypernym": "hypernymy",
    "hyponym": "hyponymy",
    "synonym": "synonymy",
}
"""The probe that asks for each relation, by its name in the judged models."""


def open_wordnet(options: WordNetOptions) -> WordNet:
    """Load the WordNet named by the options, once per process."""
    if options.parallel:
        from kb_cache.omw.load import load_parallel_once

        return load_parallel_once(options.languages, options.wordnet)
    wordnet = load_wordnet_once(options.wordnet)
    if options.language == wordnet.language:
        return wordnet
    if options.language == ENGLISH:
        raise UsageError(
            f"the words of {wordnet.name} are not English: add --language {wordnet.language}"
        )
    from kb_cache.omw.load import load_in_language_once

    return load_in_language_once(options.language, options.wordnet)


ABOUT_EDGES: dict[str, Any] = {
    "open": open_wordnet,
    "question_fields": QUESTION_FIELDS,
    "choice_fields": ("lemma", "others", "lemmas", "pos", "gloss"),
    "controls": (NO_LANGUAGE, PERTURBED),
}
"""What the declarations of all WordNet probes share, and those that ask about edges alone."""

IN_CONTEXT: dict[str, Any] = {
    **ABOUT_EDGES,
    "question_fields": ("sentence", "kind", "word", "lemma", "synonyms", "gloss", "pos"),
    "paper": "wordnetqa",
    "quick": {"pos": ("verb",)},
}
"""What the declarations of probes that ask about a word in a sentence share."""


@dataclass(frozen=True)
class WordNetPlanner:
    """What every step of planning a WordNet probe needs.

    Attributes:
        wordnet: the WordNet, in the language asked in.
        options: the build's.
        rng: the random generator.
        dropped: counts of what is left out, by reason; every step adds to it.
    """

    wordnet: WordNet
    options: WordNetOptions
    rng: RandomGenerator
    dropped: DropLog = field(default_factory=DropLog)

    @property
    def places(self) -> Territory:
        """The splits of synsets."""
        return territory(self.wordnet.structure, self.options.split_shares, self.rng.seed)

    def askable(
        self, relation: str, asking: Asking, questions: Mapping[WordNet, Questions]
    ) -> Asking:
        """Leave out questions outside the tier, rare golds, and golds that are given away.

        ``questions`` are those of each language; what is unsuitable in one is left out of all.
        """
        options, dropped = self.options, self.dropped
        exempt = options.may_be_doubtful(self.places.of_both(asking))
        asking = asking.of_tier(options.tier, dropped, exempt)
        if options.min_zipf:
            each = [zipf_of(language, asking.gold) >= options.min_zipf for language in questions]
            asking = asking.take(dropped.keep("gold is too rare a word", np.all(each, axis=0)))
        if options.stem_overlap == "drop":
            each = [
                gives_away(
                    language,
                    asked,
                    asking.question,
                    asking.gold,
                    names_shown=relation != "definition",
                    gloss_shown=options.shows_glosses,
                    asked_gloss_shown=relation == "hyponym",
                )
                for language, asked in questions.items()
            ]
            keep = dropped.drop("a shared word gives the gold away", np.any(each, axis=0))
            asking = asking.take(keep)
        return asking

    def too_shallow(self, gold: Ints) -> Bools:
        """Mark golds that are fewer hops from their root than ``--min-depth``."""
        if self.options.min_depth == 0:
            return np.zeros(gold.size, dtype=np.bool_)
        return np.asarray(self.wordnet.isa.depths()[gold] < self.options.min_depth)

    def of_concepts(
        self, relation: str, concept: Ints, questions: Mapping[WordNet, Questions]
    ) -> Plan:
        """Plan a probe whose gold is the concept itself (its gloss, its lemmas)."""
        wordnet = self.wordnet
        nodes = sorted_unique(concept)
        facts = text_facts(wordnet, nodes, lemmas=relation == "synonym")
        line, fact = np.arange(concept.size, dtype=np.int64), np.searchsorted(nodes, concept)
        none = Flags.none(concept.size)
        asking = Asking(line, fact, concept, concept, np.zeros_like(concept), none)
        shallow = self.too_shallow(concept)
        asking = asking.take(self.dropped.drop("gold is too near its root", shallow))
        # Definitions of a word's other senses may be choices: telling them apart is the task.
        same = same_gloss if relation == "definition" else alike_in_any
        truth = Truth(len(wordnet), NONE, union(same(wordnet), near(wordnet)).keys)
        asking = self.askable(relation, asking, questions)
        return self.of_questions(relation, asking, questions, facts, truth)

    def of_edges(
        self,
        asked: AskedEdges,
        true_of: Callable[[WordNet, Ints], Graph],
    ) -> Plan:
        """Plan a probe that asks about edges.

        ``true_of`` returns the nodes that must not be distractors in questions about some synsets.
        """
        wordnet, options, dropped = self.wordnet, self.options, self.dropped
        edges = edges_in_language(wordnet, options, asked.edges, dropped)
        asked = replace(asked, edges=edges, min_zipf=options.min_zipf)
        concepts = np.concatenate([concept for concept, _ in asked.edges.values()])
        true = true_of(wordnet, sorted_unique(concepts))
        source = synset_source(wordnet, options)
        plan = relation_plan(source, asked, true, options, self.rng, dropped)
        return _readable_in_all(wordnet, _described(wordnet, plan, true), _first_word)

    def of_questions(
        self,
        relation: str,
        asking: Asking,
        questions: Mapping[WordNet, Questions],
        facts: Facts,
        truth: Truth,
    ) -> Plan:
        """Split and cap the questions, and draw distractors for them."""
        wordnet, options = self.wordnet, self.options
        shown = _shown(wordnet, questions)
        word: Ints | None = None
        if "surface_form" in shown.columns and relation == "definition":
            word = to_numpy(shown.fields["lemma"].dictionary_encode().indices).astype(np.int64)
        answers = {"hypernym": wordnet.isa, "hyponym": wordnet.isa.reversed}.get(relation)
        reads = _READS.get(relation, _first_word)
        places = self.places
        nodes = nodes_of(wordnet, generality(wordnet), options.shows_glosses)
        plan = draw_plan(
            QuestionSet(asking, shown, facts, relation, places.of_both(asking)),
            NodePools(
                nodes,
                kinds=KINDS[wordnet.pos_codes],
                # One language decides for all, so that they ask the same questions.
                reads=reads(wordnet.languages[0]),
                part=places.part,
                offensive=offensive_in_any(wordnet),
            ),
            truth,
            lambda asked: wordnet_families(
                wordnet, options, asked, None if word is None else word[asked.question], answers
            ),
            options,
            self.rng,
            self.dropped,
            arguable=partial(
                arguable_distractors, wordnet.structure, PROBE_OF[relation], options.matched
            ),
            compared=partial(compared_texts, relation, shown, nodes),
        )
        return _readable_in_all(wordnet, _described(wordnet, plan, answers), reads)


def in_contexts(wordnet: WordNet, contexts: Contexts) -> dict[WordNet, Questions]:
    """Return the questions in each language; of several, each has senses of its own."""
    if len(wordnet.languages) == 1:
        return {wordnet: questions_in_context(wordnet, contexts)}
    senses = {one: one.sense_start[contexts.concept] for one in wordnet.languages}
    return {
        one: questions_in_context(one, contexts._replace(sense=own)) for one, own in senses.items()
    }


def stop_list(wordnet: WordNet, names: Sequence[str], default: Sequence[str]) -> Ints:
    """Return the ids of a stop list; the default list's names may be missing in another WordNet."""
    if names == default:
        return known_synsets(wordnet, names)
    return np.array([wordnet.synset_id(name) for name in names], dtype=np.int64)


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
