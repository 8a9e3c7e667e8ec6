"""Relations that may hold without an edge in WordNet, and so rule out distractors."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pyarrow as pa

from builders.engine.plan import Flags
from builders.engine.rows import Arguable, Asking
from builders.judged.model import CROSSES, STRATA, judged_matched, judged_model
from builders.relations import closure, only, reached, then, union
from builders.wordnet.features import JudgedPairs, features_of
from builders.wordnet.flags import MINOR_SENSE, TAXON, taxa
from builders.wordnet.neighbourhoods import main_parents, nouns_of
from builders.wordnet.synsets import (
    MERONYMS,
    OTHER_LEMMAS_SHOWN,
    alike,
    alike_in_any,
    known_synsets,
    lemma_texts,
    lexicographer_files,
    near,
    shown_glosses,
    zipf_of,
)
from kb_cache.graph import Graph
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Ints, KeySet, mask_at, ragged_ranges, sorted_unique
from kbprobe.columns import to_numpy


def true_of_namesakes(
    wordnet: WordNet, concepts: Ints, isa: Graph, golds: Ints, close: bool
) -> Graph:
    """Return a graph from concepts to golds that ``isa`` reaches from other senses of their words.

    A context rarely excludes all other senses: immobilization limits movement, so it is a kind of
    restraint, and holds what is broken in place, so it is a kind of preservation. ``close`` leaves
    out nouns in another lexicographer file, which a context does tell apart: a bank by a river, or
    for money. What is true of another sense of a verb is often true of this one.
    """
    position, namesake = alike_in_any(wordnet).expand(concepts)
    if close:
        file, verb = lexicographer_files(wordnet), POS.index("v")
        same = file[concepts[position]] == file[namesake]
        same |= wordnet.pos_codes[namesake] == verb
        position, namesake = position[same], namesake[same]
    others = sorted_unique(namesake)
    walk = isa.walk(others)
    is_gold = mask_at(len(wordnet), golds)
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


def arguable_distractors(wordnet: WordNet, probe: str, matched: bool, asking: Asking) -> Arguable:
    """Return a function that predicts whether readers would accept a distractor as an answer.

    It uses readers' judgements if there are any, and otherwise the model fitted on them; matched
    groups, whose distractors are more often arguable, have a model of their own. A draw tries the
    nearest distractors many times, so their probabilities are computed once.
    """
    known, size = features_of(wordnet), len(wordnet)
    model = judged_model("matched_distractor" if matched else "distractor")
    read = JudgedPairs.of(wordnet, judged_matched(probe)) if matched else None
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
    for start in range(0, asked.size, CHUNK):
        some = asked[start : start + CHUNK]
        doubtful[some] = chance(concepts[some], golds[some], node[some]) > limit[some]
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
        if read is not None:
            found |= read.find(concept * size + node) > 0
        return found

    return arguable


CHUNK = 1 << 14
"""Number of pairs whose features are computed at once: few enough to stay in the cache."""

UP, DOWN = 2, 3
"""Maximum hops up from a concept to its kinds, and down from these to similar things."""

NARROW = 1200
"""Kinds with more subkinds than this (artifact, instrumentality) do not make things similar."""

MANY = 100
"""Wholes with more parts than this (the United Nations) say nothing about unlisted parts."""

TRACES = ("chemical_element.n.01", "compound.n.02")
"""Kinds of substances that a thing may contain without being listed in WordNet."""

STRUCTURES = ("structure.n.01", "facility.n.01", "way.n.06")
"""Kinds of structures that exist in many places."""

CONCRETE = tuple(
    f"noun.{name}"
    for name in (
        *("animal", "artifact", "body", "event", "food", "group", "location", "object", "person"),
        *("phenomenon", "plant", "possession", "substance", "time"),
    )
)
"""Lexicographer files of concepts on whose parts people agree."""

MANY_KINDS = 80
"""A concept with more kinds than this (a building, a framework) has few parts of its own."""

ABSTRACT, VAGUE_WHOLE, RARE_WORD = "abstract_whole", "vague_whole", "rare_word"

RARE = {"part": 2.8, "opposite": 2.5}
"""Minimum word frequency (Zipf scale) of a gold in the clean tier."""

LEMMAS_SHOWN = 1 + OTHER_LEMMAS_SHOWN

PART_FLAGS = {
    TAXON: "the concept or the gold is a group of a biological classification",
    MINOR_SENSE: "no lemma shown has the gold as its first sense",
    RARE_WORD: f"the gold's first lemma is rarer than {RARE['part']} (Zipf scale)",
    ABSTRACT: "the concept is an act, an idea, a shape or the like, whose parts are a matter of "
    "convention",
    VAGUE_WHOLE: f"the concept has more than {MANY_KINDS} kinds, which differ in their parts",
}

OPPOSITE_FLAGS = {
    MINOR_SENSE: "the gold is not among the first 2 senses of the word that shows it",
    RARE_WORD: f"the gold is rarer than {RARE['opposite']} (Zipf scale)",
}


def unlisted_parts(wordnet: WordNet, concept: Ints, gold: Ints) -> Graph:
    """Return a graph from concepts to nodes that may be parts of them without being listed.

    - Parts of other things of the concept's kind: a turret is listed as part of a castle, and may
      be one of a building. Places are left out: no part of France is part of Spain.
    - Parts of wholes that share a part with the concept: Yemen is listed in Asia, as Lebanon is,
      and may be in the Middle East.
    - Nodes that name the concept in their definition, or are named in the concept's.
    - For concepts with listed substances, all elements and compounds; for a part of the body, all
      others; for a place, all buildings and areas without a proper name (a library).

    Args:
        wordnet: the knowledge base.
        concept: (questions,) the concepts asked about.
        gold: (questions,) their golds, from which distractors are drawn.
    """
    concepts, golds = sorted_unique(concept), sorted_unique(gold)
    found = [_parts_of_kin(wordnet, concepts), _beside(wordnet, concepts)]
    found += _naming(wordnet, concepts, golds)
    body, area = (wordnet.in_files(f"noun.{name}") for name in ("body", "location"))
    places, _ = wordnet.edges("instance_hypernym")
    traces, built = (
        np.intersect1d(golds, wordnet.isa.reversed.walk(known_synsets(wordnet, tops)).node)
        for tops in (TRACES, STRUCTURES)
    )
    unnamed = np.setdiff1d(np.union1d(built, golds[area[golds]]), places)
    for whole, parts in (
        (np.intersect1d(concepts, wordnet.edges("substance_meronym")[0]), traces),
        (concepts[body[concepts]], golds[body[golds]]),
        (np.intersect1d(concepts, places), unnamed),
    ):
        source, target = np.repeat(whole, parts.size), np.tile(parts, whole.size)
        found.append(Graph.from_edges(len(wordnet), source, target))
    return union(*found)


def _parts_of_kin(wordnet: WordNet, concepts: Ints) -> Graph:
    """Return a graph from concepts to parts of their kin: up to UP hops up, then DOWN hops down."""
    size = len(wordnet)
    parts = closure(wordnet.graph(*MERONYMS))
    places, _ = wordnet.edges("instance_hypernym")
    own = np.setdiff1d(concepts, places)
    up = wordnet.isa.walk(own, UP)
    kinds = sorted_unique(up.node)
    down = wordnet.isa.reversed.walk(kinds)
    # Instances do not make a kind broader.
    general = ~np.isin(down.node, places)
    narrow = np.bincount(down.source[general], minlength=kinds.size) <= NARROW
    near = narrow[down.source] & (down.hops <= DOWN) & (parts.degrees[down.node] > 0)
    kin = Graph.from_edges(size, kinds[down.source[near]], down.node[near])
    return then(then(Graph.from_edges(size, own[up.source], up.node), kin), parts)


def _beside(wordnet: WordNet, concepts: Ints) -> Graph:
    """Return a graph from concepts to parts of wholes that share a part with them."""
    direct = wordnet.graph(*MERONYMS)
    position, part = direct.expand(concepts)
    own = Graph.from_edges(len(wordnet), concepts[position], part)
    wholes = then(own, direct.reversed)
    few = direct.degrees[wholes.indices] <= MANY
    return then(Graph.from_edges(len(wordnet), wholes.sources[few], wholes.indices[few]), direct)


def _naming(wordnet: WordNet, concepts: Ints, golds: Ints) -> tuple[Graph, Graph]:
    """Return graphs from concepts to golds whose definitions name them, and to golds they name.

    A place is also named by its adjective: "a French river".
    """
    size = len(wordnet)
    adjective, noun = wordnet.edges("pertainym")
    pertaining = Graph.from_edges(size, noun, adjective)
    named = union(pertaining, Graph.from_edges(size, concepts, concepts))
    plain = Graph.from_edges(size, golds, golds)
    source, target = _named_in(wordnet, concepts, named, golds)
    one = Graph.from_edges(size, source, target)
    source, target = _named_in(wordnet, golds, plain, concepts)
    return one, Graph.from_edges(size, target, source)


def _named_in(wordnet: WordNet, nodes: Ints, names: Graph, others: Ints) -> tuple[Ints, Ints]:
    """Return pairs of a node and another whose definition contains all words of one of its lemmas.

    ``names`` leads from a node to the synsets whose lemmas name it.
    """
    texts = lemma_texts(wordnet)
    glosses = shown_glosses(wordnet).take(pa.array(others)).to_pylist()
    holding: dict[str, set[int]] = defaultdict(set)
    for other, gloss in zip(others.tolist(), glosses, strict=True):
        for word in _words(gloss):
            holding[word].add(other)
    pairs: set[tuple[int, int]] = set()
    for node in nodes.tolist():
        for called in names.neighbours(node).tolist():
            first, end = wordnet.sense_start[called], wordnet.sense_start[called + 1]
            for lemma in texts[first:end].to_pylist():
                words = [holding[word] for word in _words(lemma)]
                pairs |= {(node, other) for other in set.intersection(*words)} if words else set()
    found = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _words(text: str) -> set[str]:
    return {word.lower().removesuffix("s") for word in re.findall(r"[^\W_]{3,}", text)}


def part_flags(wordnet: WordNet, concept: Ints, gold: Ints) -> Flags:
    """Return the flags of pairs of a concept and one of its parts."""
    concrete = wordnet.in_files(*CONCRETE, "")  # "": lexicons may state no topic
    groups = taxa(wordnet)
    whole = sorted_unique(concept)
    kinds = np.bincount(wordnet.hyponyms.walk(whole).source, minlength=whole.size)
    flags = Flags.none(gold.size).mark(TAXON, np.isin(concept, groups) | np.isin(gold, groups))
    flags = _word_flags(flags, wordnet, gold, LEMMAS_SHOWN, 1, RARE["part"])
    flags = flags.mark(ABSTRACT, ~concrete[concept])
    return flags.mark(VAGUE_WHOLE, np.isin(concept, whole[kinds > MANY_KINDS]))


def opposite_flags(wordnet: WordNet, concept: Ints, gold: Ints) -> Flags:
    """Return the flags of pairs of a word and its opposite."""
    return _word_flags(Flags.none(gold.size), wordnet, gold, 1, 2, RARE["opposite"])


def _word_flags(
    flags: Flags, wordnet: WordNet, gold: Ints, shown: int, senses: int, zipf: float
) -> Flags:
    """Mark golds that are not among the first senses of their words, or rare, in any language."""
    for edition in wordnet.languages:
        flags = flags.mark(MINOR_SENSE, _sense(edition, gold, shown) > senses)
        flags = flags.mark(RARE_WORD, zipf_of(edition, gold) < zipf)
    return flags


def _sense(wordnet: WordNet, nodes: Ints, shown: int) -> Ints:
    """Return each node's best sense number among its first ``shown`` lemmas."""
    number = to_numpy(wordnet.senses["number"]).astype(np.int64)
    count = np.minimum(np.diff(wordnet.sense_start)[nodes], shown)
    start = np.cumsum(count) - count
    return np.minimum.reduceat(number[ragged_ranges(wordnet.sense_start[nodes], count)], start)
