"""What the WordNet questions need: oracles that know a part of them."""

from __future__ import annotations

import numpy as np

from builders.engine.plan import Oracle, Oracles, Plan, credit
from builders.wordnet.neighbourhoods import ancestors, main_parents
from builders.wordnet.synsets import alike_in_any, generality, lexicographer_files
from kb_cache.graph import Graph
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Ints, contains, sorted_unique

GRADE = 2.3
"""Width of a grade of generality: a factor of ten in what lies below a synset."""

TOPIC = 3
"""Edges up to an ancestor that two synsets of one topic share: a great-grandparent."""


def wordnet_oracles(wordnet: WordNet, plan: Plan, true_of: Graph | None) -> Oracles:
    """Return what oracles of a plan's questions reach.

    ``true_of`` leads from concepts to what is an answer to a question about them; None: the concept
    itself is.
    """
    concept = plan.provenance.concept.codes.astype(np.int64)
    nodes = plan.nodes.astype(np.int64)
    file = lexicographer_files(wordnet)
    general = generality(wordnet)
    asked = concept[:, None]
    possible = {
        "field": ("the lexicographer file of the word", file[nodes] == file[asked], 0.5),
        "level": (
            "how general the answer is",
            np.abs(general[nodes] - general[nodes[:, :1]]) < GRADE / 2,
            0.5,
        ),
        "topic": (
            "what shares a great-grandparent with the word",
            _share_topic(wordnet, asked, nodes),
            0.6,
        ),
    }
    if "surface_form" in plan.questions.columns:
        possible["word"] = (
            "all senses of the word, not its sentence",
            _true_of_a_sense(wordnet, concept, nodes, true_of),
            # What is true of another sense of the word is no distractor of its kinds.
            0.95 if true_of is None else 1.0,
        )
    return {
        name: Oracle(knows, credit(those), target)
        for name, (knows, those, target) in possible.items()
    }


def _share_topic(wordnet: WordNet, asked: Ints, nodes: Ints) -> Bools:
    main = main_parents(wordnet)
    shared = np.zeros(nodes.shape, dtype=np.bool_)
    tops = [ancestors(main, nodes, reach) for reach in range(TOPIC + 1)]
    for reach in range(TOPIC + 1):
        own = ancestors(main, asked, reach)
        for top in tops:
            shared |= (own >= 0) & (own == top)
    return shared


def _true_of_a_sense(wordnet: WordNet, concept: Ints, nodes: Ints, true_of: Graph | None) -> Bools:
    """(rows, K) whether a choice is true of any synset that shares a word with the concept."""
    size = len(wordnet)
    concepts = sorted_unique(concept)
    namesakes = alike_in_any(wordnet)
    position, other = namesakes.expand(concepts)
    owner = np.concatenate([concepts, concepts[position]])
    sense = np.concatenate([concepts, other])
    if true_of is None:
        keys = owner * size + sense
    else:
        senses = sorted_unique(sense)
        walk = true_of.walk(senses)
        reached = Graph.from_edges(size, senses[walk.source], walk.node)
        at, node = reached.expand(sense)
        keys = owner[at] * size + node
    return contains(sorted_unique(keys), concept[:, None] * size + nodes)
