"""What may be true without an edge of WordNet's, and is therefore no distractor."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from builders.engine.rows import Arguable, Asking
from builders.judged.model import CROSSES, JUDGED, STRATA, judged_model
from builders.relations import closure, then, union
from builders.wordnet.features import features_of
from builders.wordnet.neighbourhoods import main_parents, nouns_of
from builders.wordnet.parts import unlisted_parts
from builders.wordnet.synsets import MERONYMS, alike, alike_in_any, near
from kb_cache.graph import Graph
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Floats, Ints, KeySet, sorted_unique


def true_of_namesakes(wordnet: WordNet, concepts: Ints, isa: Graph, golds: Ints) -> Graph:
    """Lead from each concept to golds that ``isa`` reaches from another sense of its words.

    A context rarely excludes all other senses: immobilization limits movement, so that it is a
    kind of restraint, and holds what is broken in place, so that it is a kind of preservation.
    """
    position, namesake = alike_in_any(wordnet).expand(concepts)
    others = sorted_unique(namesake)
    walk = isa.walk(others)
    is_gold = np.zeros(len(wordnet), dtype=np.bool_)
    is_gold[golds] = True
    kept = is_gold[walk.node]
    reached = Graph.from_edges(len(wordnet), others[walk.source[kept]], walk.node[kept])
    at, node = reached.expand(namesake)
    return Graph.from_edges(len(wordnet), concepts[position][at], node)


@lru_cache(maxsize=2)
def possible_parts(wordnet: WordNet) -> Graph:
    """Lead from each synset to what may be a part of it, and to what it may be a part of."""
    parts, isa = closure(wordnet.graph(*MERONYMS)), closure(wordnet.isa)
    # What a car has, a vehicle or a taxi may have; parts of parts are parts; so are kinds of them.
    whole = union(parts, then(isa, parts), then(isa.reversed, parts), parts.reversed)
    return union(whole, then(whole, wordnet.isa.reversed))


def parts_without_edge(wordnet: WordNet, concept: Ints, gold: Ints) -> Graph:
    """Lead from concepts to what may be a part of them although no edge says so.

    Without a definition, a word may be taken in another of its senses, whose parts count too.
    """
    found = unlisted_parts(wordnet.structure, concept, gold)
    if wordnet.structure is wordnet:
        return found
    concepts = sorted_unique(concept)
    position, namesake = alike_in_any(wordnet).expand(concepts)
    meant = Graph.from_edges(len(wordnet), concepts[position], namesake)
    return union(found, then(meant, possible_parts(wordnet)))


@lru_cache(maxsize=2)
def possible_opposites(wordnet: WordNet) -> Graph:
    """Lead from each synset to what may be taken for its opposite, and to what is near it.

    What is opposed to something alike or near may be taken for one.
    """
    opposite, related = wordnet.graph("antonym"), union(alike_in_any(wordnet), near(wordnet))
    return union(opposite, related, then(related, opposite), then(then(related, related), opposite))


def near_opposites(wordnet: WordNet, concept: Ints, gold: Ints) -> Graph:
    """Lead from concepts to other golds that may mean nearly the same as their opposite.

    They share a parent with it or, as adjectives, their nouns do: superior is near senior.
    """
    wordnet, golds = wordnet.structure, sorted_unique(gold)
    noun, main = nouns_of(wordnet), main_parents(wordnet)
    found = []
    for top in (main, noun, np.where(noun < 0, -1, main[noun])):
        asked = top[gold] >= 0
        at, other = _by_top(top, golds).expand(top[gold[asked]])
        found.append(Graph.from_edges(len(wordnet), concept[asked][at], other))
    return union(*found)


def _by_top(top: Ints, nodes: Ints) -> Graph:
    """Lead from each top to those of some nodes that have it; ``top`` is -1 where there is none."""
    below = nodes[top[nodes] >= 0]
    return Graph.from_edges(top.size, top[below], below)


def arguable_distractors(wordnet: WordNet, probe: str, asking: Asking) -> Arguable:
    """Return what tells whether readers may well take a distractor for an answer.

    What readers judged is decided by that, the rest by the model of their judgements. The nearest
    distractors are tried again and again in a draw: their chances are computed once.
    """
    known, model, size = features_of(wordnet), judged_model("distractor"), len(wordnet)
    most = np.array([model.thresholds[f"{probe}:{name}"] for name in STRATA])

    def too_likely(concept: Ints, gold: Ints, node: Ints, limit: Floats) -> Bools:
        features = known.beside(concept, gold, node)
        features |= {name: np.full(node.size, float(name == probe)) for name in JUDGED}
        return np.asarray(model.chance(features) > limit)

    concepts, golds = np.divmod(sorted_unique(asking.concept * size + asking.gold), size)
    main = main_parents(wordnet)
    rooted = np.flatnonzero(main[golds] >= 0)
    at, sibling = _by_top(main, sorted_unique(asking.gold)).expand(main[golds[rooted]])
    pair, namesake = alike(wordnet).expand(concepts)
    pair, node = np.append(rooted[at], pair), np.append(sibling, namesake)
    concepts, golds = concepts[pair], golds[pair]
    limit = most[known.stratum(concepts, golds, node)]
    doubtful = limit <= 0
    asked = np.flatnonzero((limit > 0) & (limit < 1))
    doubtful[asked] = too_likely(concepts[asked], golds[asked], node[asked], limit[asked])
    triples = (concepts * size + golds) * size + node
    near, doubted = (KeySet(sorted_unique(some)) for some in (triples, triples[doubtful]))

    # What belongs to its neighbours may belong to a class that cuts across them: of the rows that
    # ask for a kind of one, readers found 82% sound where distractors are near, 99% elsewhere.
    down = probe == "hyponymy"
    crossing = (known.crosses == CROSSES["cross-cutting"]) & down
    of_kinds = down or probe == "hypernymy"

    def arguable(concept: Ints, gold: Ints, node: Ints) -> Bools:
        asked = (concept * size + gold) * size + node
        same = known.file[gold] == known.file[node]
        found = doubted.contains(asked)
        if most[:2].min() < 1:
            limit = most[same * 1]
            other = np.flatnonzero(~found & (limit < 1) & ~near.contains(asked))
            found[other] = too_likely(concept[other], gold[other], node[other], limit[other])
        if of_kinds:
            judged = known.judged_kind(*((node, concept) if down else (concept, node)))
            found = np.where(np.isnan(judged), found | (same & crossing[concept]), judged > 0)
        return found

    return arguable
