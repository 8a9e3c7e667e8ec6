"""What the WordNet probes know of synsets: likeness, paths, contexts, given-away golds."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from builders.engine.plan import Questions
from builders.wordnet.synsets import (
    alike,
    contexts_of,
    generality,
    gives_away,
    path_facts,
    shown_glosses,
)
from kb_cache.graph import Graph
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Ints

NO_SYNONYMS = pa.array([[]], pa.list_(pa.string()))


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return load_wordnet("3.0")


def ids(wordnet: WordNet, *names: str) -> Ints:
    return np.array([wordnet.synset_id(name) for name in names], dtype=np.int64)


# Likeness


@pytest.mark.slow
def test_alike_are_synsets_that_share_a_lemma_or_a_gloss(wordnet: WordNet) -> None:
    """Against a dictionary of all lemmas, in lower case and without hyphens and spaces."""
    holders: dict[str, set[int]] = defaultdict(set)
    held: dict[int, set[str]] = defaultdict(set)
    senses = zip(
        wordnet.senses["synset"].to_pylist(), wordnet.senses["lemma"].to_pylist(), strict=True
    )
    glosses = shown_glosses(wordnet).to_pylist()
    for synset, lemma in senses:
        word = re.sub(r"[\W_]+", "", lemma.lower())
        holders[word].add(synset)
        held[synset].add(word)
    for synset, gloss in enumerate(glosses):
        holders[f"= {gloss}"].add(synset)
        held[synset].add(f"= {gloss}")
    graph = alike(wordnet)
    for synset in range(0, len(wordnet), 7):
        expected = set().union(*(holders[label] for label in held[synset])) - {synset}
        assert set(graph.neighbours(synset).tolist()) == expected


def test_alike_is_mutual_and_knows_examples(wordnet: WordNet) -> None:
    graph = alike(wordnet)
    assert (graph.indices == graph.reversed.indices).all()
    assert (graph.indptr == graph.reversed.indptr).all()
    dog, cad, canine = ids(wordnet, "dog.n.01", "cad.n.01", "canine.n.02").tolist()
    assert cad in graph.neighbours(dog)
    assert canine not in graph.neighbours(dog)


# Paths


@st.composite
def graphs_and_ends(draw: st.DrawFn) -> tuple[int, frozenset[tuple[int, int]], list[int]]:
    size = draw(st.integers(2, 8))
    node = st.integers(0, size - 1)
    edges = draw(st.frozensets(st.tuples(node, node).filter(lambda e: e[0] != e[1]), max_size=18))
    return size, edges, draw(st.lists(node, min_size=1, max_size=4))


def shortest_paths(edges: frozenset[tuple[int, int]], start: int) -> dict[int, list[list[int]]]:
    """Every shortest path from a node to each of those that it reaches."""
    paths, level = {start: [[start]]}, {start: [[start]]}
    while level:
        longer: dict[int, list[list[int]]] = defaultdict(list)
        for end, ways in level.items():
            for one, other in edges:
                if one == end and other not in paths:
                    longer[other] += [[*way, other] for way in ways]
        paths |= longer
        level = longer
    del paths[start]
    return paths


@pytest.mark.slow
@given(graphs_and_ends())
def test_path_facts_spell_out_the_shortest_path_through_the_lowest_ids(
    drawn: tuple[int, frozenset[tuple[int, int]], list[int]],
) -> None:
    size, edges, starts = drawn
    asked = [
        (start, end, min(ways))
        for start in starts
        for end, ways in shortest_paths(edges, start).items()
    ]
    assume(asked)
    concept, gold = (np.array([one[i] for one in asked], dtype=np.int64) for i in (0, 1))
    hops = np.array([len(path) - 1 for _, _, path in asked], dtype=np.int64)
    graph = Graph.from_edges(size, [one for one, _ in edges], [other for _, other in edges])
    names = pa.array([f"n{i}" for i in range(size)])
    facts = path_facts(graph, concept, gold, hops, "hypernym", names)
    assert facts.relation.values.to_pylist() == ["hypernym"]
    assert not facts.relation.codes.any()
    for at, (_, _, path) in enumerate(asked):
        edge = slice(facts.indptr[at], facts.indptr[at + 1])
        assert facts.subject.codes[edge].tolist() == path[:-1]
        assert facts.object.codes[edge].tolist() == path[1:]


# Contexts


def test_contexts_are_examples_with_the_word_located(wordnet: WordNet) -> None:
    found = contexts_of(wordnet, np.ones(len(wordnet), dtype=np.bool_))
    assert np.unique(found.example).size == found.example.size
    assert found.example.size > 40_000
    owners = np.asarray(wordnet.examples["synset"])[found.example]
    assert (owners == found.concept).all()
    texts = wordnet.examples["text"].take(pa.array(found.example)).to_pylist()
    for text, start, end in zip(texts, found.start.tolist(), found.end.tolist(), strict=True):
        assert 0 <= start < end <= len(text)
        assert not text[start].isspace()
        assert not text[end - 1].isspace()
        assert len(text) - (end - start) >= 6  # there is a context beside the word


def test_contexts_are_of_the_concepts_wanted(wordnet: WordNet) -> None:
    wanted = np.zeros(len(wordnet), dtype=np.bool_)
    wanted[ids(wordnet, "run.v.01", "dog.n.01", "break.v.02")] = True
    some = contexts_of(wordnet, wanted)
    assert set(some.concept.tolist()) == set(np.flatnonzero(wanted).tolist())
    everywhere = contexts_of(wordnet, np.ones_like(wanted))
    own = wanted[everywhere.concept]
    assert some.example.tolist() == everywhere.example[own].tolist()


# Golds given away


@pytest.mark.parametrize(
    ("context", "word", "gold", "given"),
    [
        ("a dog barked all night", "dog", "canine.n.02", False),
        ("a dog barked all night", "dog", "dog.n.01", True),
        ("canines were everywhere, a dog among them", "dog", "canine.n.02", True),
        ("a dog slept all night", "dog", "basenji.n.01", False),
        # Its gloss says that it cannot bark.
        ("a dog barked all night", "dog", "basenji.n.01", True),
        ("a pug barked all night", "pug", "toy_dog.n.01", False),
        ("a dog barked all night", "dog", "toy_dog.n.01", True),
        # Its gloss, not its name, holds the word asked about.
        ("a dog barked all night", "dog", "great_pyrenees.n.01", True),
    ],
)
def test_a_word_shared_by_question_and_gold_gives_it_away(
    wordnet: WordNet, context: str, word: str, gold: str, given: bool
) -> None:
    fields = {"sentence": [context], "gloss": ["a member of the genus Canis"], "word": [word]}
    fields["synonyms"] = NO_SYNONYMS
    asked = Questions.from_columns(np.array([0]), fields, surface_form="word")
    shown = {"names_shown": True, "gloss_shown": True, "asked_gloss_shown": False}
    found = gives_away(wordnet, asked, np.array([0]), ids(wordnet, gold), **shown)
    assert found.tolist() == [given]


def test_a_word_of_the_definition_gives_the_gold_away_where_it_is_shown(wordnet: WordNet) -> None:
    fields = {"sentence": ["a dog ran"], "gloss": ["a tame kind of wolf"], "word": ["dog"]}
    fields["synonyms"] = NO_SYNONYMS
    asked = Questions.from_columns(np.array([0]), fields, surface_form="word")
    for shown in (False, True):
        found = gives_away(
            wordnet,
            asked,
            np.array([0]),
            ids(wordnet, "wolf.n.01"),
            names_shown=True,
            gloss_shown=False,
            asked_gloss_shown=shown,
        )
        assert found.tolist() == [shown]


# Texts and levels


def test_shown_glosses_lose_only_what_examples_left_behind(wordnet: WordNet) -> None:
    whole, shown = wordnet.synsets["gloss"].to_pylist(), shown_glosses(wordnet).to_pylist()
    changed = [(old, new) for old, new in zip(whole, shown, strict=True) if old != new]
    assert 0 < len(changed) < len(whole) / 50
    assert all(new.strip() for new in shown)
    assert not any('"' in new or new.endswith((";", ",", ":")) for new in shown)
    dog = wordnet.synset_id("dog.n.01")
    assert shown[dog] == whole[dog]


def test_what_stands_higher_is_more_general(wordnet: WordNet) -> None:
    general = generality(wordnet)
    corgi, dog, animal, entity = ids(
        wordnet, "corgi.n.01", "dog.n.01", "animal.n.01", "entity.n.01"
    )
    assert general[corgi] < general[dog] < general[animal] < general[entity]
    assert general[wordnet.synset_id("pembroke.n.01")] == 0.0
    assert np.isfinite(general).all()
