"""Relations that may hold without an edge in WordNet, and so rule out distractors."""

from __future__ import annotations

import numpy as np

from builders.engine.rows import Arguable, Asking
from builders.judged.model import CROSSES, STRATA, judged_model
from builders.relations import closure, only, reached, then, union
from builders.wordnet.features import features_of
from builders.wordnet.neighbourhoods import main_parents, nouns_of
from builders.wordnet.parts import unlisted_parts
from builders.wordnet.synsets import MERONYMS, alike, alike_in_any, near
from kb_cache.graph import Graph
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Ints, KeySet, sorted_unique


def true_of_namesakes(wordnet: WordNet, concepts: Ints, isa: Graph, golds: Ints) -> Graph:
    """Return a graph from concepts to golds that ``isa`` reaches from other senses of their words.

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


def possible_parts(wordnet: WordNet, nodes: Ints) -> Graph:
    """Return a graph from some synsets to their possible parts and their possible wholes."""
    parts, up = closure(wordnet.graph(*MERONYMS)), wordnet.isa
    # What a car has, a vehicle or a taxi may have. Parts of parts, and kinds of parts, count too.
    above, below = reached(up, nodes), reached(up.reversed, nodes)
    own, wholes = only(parts, nodes), only(parts.reversed, nodes)
    whole = union(own, then(above, parts), then(below, parts), wholes)
    return union(whole, then(whole, up.reversed))


def parts_without_edge(wordnet: WordNet, concept: Ints, gold: Ints) -> Graph:
    """Return a graph from concepts to possible parts for which WordNet has no edge.

    Without a definition, a word may be taken in another of its senses, whose parts count too.
    """
    found = unlisted_parts(wordnet.structure, concept, gold)
    if wordnet.structure is wordnet:
        return found
    concepts = sorted_unique(concept)
    position, namesake = alike_in_any(wordnet).expand(concepts)
    meant = Graph.from_edges(len(wordnet), concepts[position], namesake)
    return union(found, then(meant, possible_parts(wordnet, sorted_unique(namesake))))


def possible_opposites(wordnet: WordNet, nodes: Ints) -> Graph:
    """Return a graph from some synsets to their possible opposites, and to synsets near them.

    The opposites of synsets that are alike or near are possible opposites too.
    """
    opposite, related = wordnet.graph("antonym"), union(alike_in_any(wordnet), near(wordnet))
    own = only(related, nodes)
    far = then(then(own, related), opposite)
    return union(only(opposite, nodes), own, then(own, opposite), far)


def near_opposites(wordnet: WordNet, concept: Ints, gold: Ints) -> Graph:
    """Return a graph from concepts to golds that may mean nearly the same as their opposite.

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
    """Return a graph from each top to those of ``nodes`` below it; a ``top`` of -1 is none."""
    below = nodes[top[nodes] >= 0]
    return Graph.from_edges(top.size, top[below], below)


def arguable_distractors(wordnet: WordNet, probe: str, asking: Asking) -> Arguable:
    """Return a function that tells whether readers are likely to accept a distractor as an answer.

    It uses readers' judgements where there are any, and the model fitted on them elsewhere. A draw
    tries the nearest distractors many times, so their probabilities are computed once.
    """
    known, model, size = features_of(wordnet), judged_model("distractor"), len(wordnet)
    chance = known.chances(model, probe)
    most = np.array([model.thresholds[f"{probe}:{name}"] for name in STRATA])

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
    doubtful[asked] = chance(concepts[asked], golds[asked], node[asked]) > limit[asked]
    triples, first = np.unique((concepts * size + golds) * size + node, return_index=True)
    near, doubted = KeySet(triples), np.append(doubtful[first], False)

    # Members of neighbouring classes may also belong to a class that overlaps with these: of the
    # rows that ask for its kinds, readers find 82% sound if distractors are near, else 99%.
    down = probe == "hyponymy"
    crossing = (known.crosses == CROSSES["cross-cutting"]) & down
    of_kinds = down or probe == "hypernymy"

    def arguable(concept: Ints, gold: Ints, node: Ints) -> Bools:
        place = near.positions((concept * size + gold) * size + node)
        same = known.file[gold] == known.file[node]
        found = doubted[place]
        undecided = place < 0
        if of_kinds:
            judged = known.judged_kind(*((node, concept) if down else (concept, node)))
            unread = np.isnan(judged)
            found = np.where(unread, found | (same & crossing[concept]), judged > 0)
            undecided &= unread & ~found
        if most[:2].min() < 1:
            limit = most[same * 1]
            asked = np.flatnonzero(undecided & (limit < 1))
            found[asked] = chance(concept[asked], gold[asked], node[asked]) > limit[asked]
        return found

    return arguable
