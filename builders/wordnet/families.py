"""The distractor families of the WordNet probes, defined by position relative to a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from builders.engine.draw.balanced import ranks_within
from builders.engine.draw.families import ChoiceKinds, Family, Pool
from builders.engine.options import RANDOM
from builders.engine.plan import Oracle, Oracles, Plan, credit
from builders.engine.rows import Asking
from builders.wordnet.neighbourhoods import (
    ancestors,
    main_parents,
    nouns_of,
    taxonomy_order,
)
from builders.wordnet.options import NEAR, SAME_WORD, WordNetOptions
from builders.wordnet.synsets import (
    KINDS,
    alike_in_any,
    generality,
    lexicographer_files,
    parents_for_levels,
)
from kb_cache.graph import Graph
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Ints, contains, sorted_unique

LEVELS = {"sibling": 1, "cousin": 2, "second_cousin": 3}
"""Families of golds on the same level and in the same lexicographer file, with the number of edges
up to their common ancestor."""

BRANCH = "_branch"
"""Suffix of families whose golds belong to siblings, or cousins, of the concept."""

FIELD = "field"
"""Family of nouns or verbs in one lexicographer file that are close in the taxonomy."""

FIELD_SIZE = 150
"""Number of distinct golds, or concepts, in a field."""


QUALITY = "quality"
"""Family of adjectives or adverbs whose nouns (height for high) are close in the taxonomy."""

QUALITY_SIZE = 50
"""Number of distinct golds whose nouns count as close."""


def wordnet_families(
    wordnet: WordNet,
    options: WordNetOptions,
    asking: Asking,
    word: Ints | None = None,
    true_of: Graph | None = None,
) -> Iterator[Family]:
    """Yield the families asked for.

    ``word`` is the word that each question asks about, and ``true_of`` leads from concepts to their
    answers; None if the answer is the concept itself.
    """
    main = main_parents(wordnet)
    for name in options.family_list:
        level = name.removesuffix(BRANCH)
        if name == RANDOM:
            yield Family(RANDOM, 0, np.zeros_like(asking.gold))
        elif name == SAME_WORD:
            yield Family(SAME_WORD, 0, np.zeros_like(asking.gold), kin=word)
        elif name == NEAR:
            down = any(other.endswith(BRANCH) for other in options.NEAR)
            asked = asking.concept if down else asking.gold
            yield Family(
                NEAR,
                0,
                _neighbourhood(wordnet, asked),
                close=lexicographer_files(wordnet)[asked],
                kinds=choice_kinds(wordnet, true_of),
            )
        elif name == FIELD:
            # If golds belong to the concepts, the concepts determine closeness.
            down = any(other.endswith(BRANCH) for other in options.family_list)
            yield Family(FIELD, 0, _fields(wordnet, asking.concept if down else asking.gold))
        elif name == QUALITY:
            yield Family(QUALITY, 0, _qualities(wordnet, asking.gold))
        elif name in LEVELS:
            reach = LEVELS[name]
            top = ancestors(main, asking.gold, reach)
            yield Family(name, reach, _within_field(wordnet, asking.gold, top))
        elif level in LEVELS:
            # Choices are as far below as the gold, each on a branch of its own.
            reach = LEVELS[level]
            top = ancestors(main, asking.concept, reach)
            levels = int(asking.hops.max(initial=0)) + 1
            key = np.where(top < 0, -1, top * levels + asking.hops)
            yield Family(name, reach, key, unit=asking.concept)
        else:
            yield from _published(wordnet, options, asking, name)


OTHER_SENSE, CHILD, PARENT, SISTER = "other_sense", "child", "parent", "sister"
"""Kinds of distractors by their relation to the concept: true of another sense of the word; below
it; above it; with a parent in common."""


def choice_kinds(wordnet: WordNet, true_of: Graph | None) -> ChoiceKinds:
    """Return what distractors are in particular: to the concept, or on the gold's level.

    ``true_of`` leads from concepts to the answers to questions about them; None if the answer is
    the concept itself.
    """
    main = main_parents(wordnet)
    names = (OTHER_SENSE, CHILD, PARENT, SISTER, *LEVELS)

    def of(concept: Ints, gold: Ints, node: Ints) -> Ints:
        own = main[concept]
        tests = [
            _true_of_a_sense(wordnet, concept, node[:, None], true_of)[:, 0],
            _below(wordnet, node, concept),
            _below(wordnet, concept, node),
            (own >= 0) & (own == main[node]),
        ]
        for reach in LEVELS.values():
            top = ancestors(main, gold, reach)
            tests.append((top >= 0) & (top == ancestors(main, node, reach)))
        return np.select(tests, list(range(len(names))), -1)

    return ChoiceKinds(names, of)


def _below(wordnet: WordNet, node: Ints, other: Ints) -> Bools:
    """Return for parallel arrays whether each node is below the other in the taxonomy."""
    nodes = sorted_unique(node)
    walk = wordnet.isa.walk(nodes)
    pairs = sorted_unique(nodes[walk.source] * len(wordnet) + walk.node)
    return contains(pairs, node * len(wordnet) + other)


def _within_field(wordnet: WordNet, nodes: Ints, key: Ints) -> Ints:
    """Divide keys by lexicographer file, so that the file does not distinguish choices."""
    file = lexicographer_files(wordnet)
    return np.where(key < 0, -1, key * (file.max() + 1) + file[nodes])


def _fields(wordnet: WordNet, nodes: Ints) -> Ints:
    """Return the field of each node: runs of distinct nodes that are close in the taxonomy.

    Adjectives and adverbs (-1) have one lexicographer file each.
    """
    file = lexicographer_files(wordnet)[nodes]
    field = _runs(nodes, file, taxonomy_order(wordnet)[nodes], FIELD_SIZE)
    return np.where(wordnet.pos_codes[nodes] > POS.index("v"), -1, field)


def _neighbourhood(wordnet: WordNet, nodes: Ints) -> Ints:
    """Return the place of each node in the order of lexicographer files and the taxonomy."""
    file, place = lexicographer_files(wordnet)[nodes], taxonomy_order(wordnet)[nodes]
    return np.asarray(file * (place.max(initial=0) + 1) + place)


def _qualities(wordnet: WordNet, nodes: Ints) -> Ints:
    """Return the quality of each node: runs of those whose nouns are close; nouns, verbs: -1."""
    noun = nouns_of(wordnet)[nodes]
    known = noun >= 0
    place = taxonomy_order(wordnet)[noun[known]]
    quality = np.full(nodes.size, -1)
    quality[known] = _runs(
        nodes[known], KINDS[wordnet.pos_codes[nodes[known]]], place, QUALITY_SIZE
    )
    return quality


def _runs(nodes: Ints, group: Ints, place: Ints, size: int) -> Ints:
    """Number the runs of ``size`` distinct nodes, by their place within their group.

    Equal nodes are in the same group and have the same place.
    """
    distinct, first, again = np.unique(nodes, return_index=True, return_inverse=True)
    group, place = group[first], place[first]
    order = np.lexsort((place, group))
    run = np.empty_like(distinct)
    run[order] = group[order] * distinct.size + ranks_within(group[order]) // size
    return run[again]


MAX_DISTANCE = 4
"""Maximum distance of published hyponym and hypernym distractors, in hops."""


def _published(
    wordnet: WordNet, options: WordNetOptions, asking: Asking, name: str
) -> Iterator[Family]:
    """Yield a family of WordNetQA at each distance: sisters of the concept, or what is below it."""
    concepts = sorted_unique(asking.concept)
    make: Callable[[int], Graph]
    if name == "sister":
        parents, most = parents_for_levels(wordnet), options.sister_depth
        make = lambda depth: sisters(parents, concepts, depth)  # noqa: E731
    else:
        graph, most = wordnet.isa, MAX_DISTANCE
        graph = graph if name == "hypernym" else graph.reversed
        make = lambda distance: at_distance(graph, concepts, distance)  # noqa: E731
    for distance in range(1, most + 1):
        yield Family(name, distance, asking.concept, pool=Pool.of(make(distance)))


def at_distance(graph: Graph, nodes: Ints, hops: int) -> Graph:
    """Return each node's neighbours at exactly ``hops`` edges by the shortest path."""
    walk = graph.walk(nodes, hops)
    exact = walk.hops == hops
    return Graph.from_edges(len(graph), nodes[walk.source[exact]], walk.node[exact])


def sisters(parents: Graph, nodes: Ints, depth: int) -> Graph:
    """Return the nodes ``depth`` edges below the parents of each node, outside its own branch.

    Depth 1 holds the siblings, depth 2 the children of siblings, and so on: SISTER_l of
    Richardson & Sabharwal (TACL 2020, section 3.1), one level at a time.
    """
    size, children = len(parents), parents.reversed
    position, parent = parents.expand(nodes)
    source = nodes[position]
    below = at_distance(children, sorted_unique(parent), depth)
    position, node = below.expand(parent)
    found = source[position] * size + node
    own = children.walk(nodes, depth)
    taken = sorted_unique(np.concatenate([nodes * (size + 1), nodes[own.source] * size + own.node]))
    return Graph.from_edges(size, *np.divmod(found[~contains(taken, found)], size))


GRADE = 2.3
"""Width of a grade of generality: a factor of ten in the number of synsets below."""

TOPIC = 3
"""Edges up to an ancestor that two synsets of one topic share: a great-grandparent."""


def wordnet_oracles(wordnet: WordNet, true_of: Graph | None, plan: Plan) -> Oracles:
    """Return the results of oracles on a plan's questions.

    ``true_of`` leads from concepts to the answers to questions about them; None if the answer is
    the concept itself.
    """
    concept = plan.concept.codes.astype(np.int64)
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
            # Golds of another sense of the word are never distractors.
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
    """Return (rows, K) whether a choice is true of any synset sharing a word with the concept."""
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
