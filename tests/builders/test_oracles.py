"""Oracles of partial knowledge, against what a loop over rows says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.engine.plan import Plan, credit
from builders.engine.probe import find_probe
from builders.wordnet.families import GRADE, TOPIC
from builders.wordnet.neighbourhoods import main_parents
from builders.wordnet.planning import open_wordnet
from builders.wordnet.synsets import alike, generality
from kb_cache.wordnet.types import WordNet
from kbprobe.rng import RandomGenerator

ROWS = 60


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=9))
def test_credit_is_the_chance_of_a_pick_among_the_possible(possible: list[list[bool]]) -> None:
    expected = [1 / sum(row) * row[0] if any(row) else 1 / 4 for row in possible]
    assert credit(np.array(possible)).tolist() == pytest.approx(expected)


@pytest.fixture(scope="module")
def wordnet(miniature: str) -> WordNet:
    options = find_probe("wordnet_hypernymy").options
    return open_wordnet(options.parse({"wordnet": miniature}, ""))


@pytest.fixture(
    scope="module",
    params=["wordnet_hypernymy", pytest.param("wordnet_definitions", marks=pytest.mark.slow)],
)
def plan(request: pytest.FixtureRequest, wordnet: WordNet) -> tuple[str, Plan]:
    probe = find_probe(request.param)
    options = probe.options.parse({"pos": ("verb",)}, probe.name)
    made = probe.plan(wordnet, options, RandomGenerator.of(0, probe.name))
    rows = np.linspace(0, len(made) - 1, ROWS).astype(np.int64)
    return request.param, made.take(rows)


def chain(main: np.ndarray, node: int) -> set[int]:
    """A node and its ancestors up to a great-grandparent."""
    found = {node}
    for _ in range(TOPIC):
        node = int(main[node])
        if node < 0:
            break
        found.add(node)
    return found


def test_oracles_of_wordnet(plan: tuple[str, Plan], wordnet: WordNet) -> None:
    name, some = plan
    main, general = main_parents(wordnet), generality(wordnet)
    files = wordnet.synsets["lexname"].to_pylist()
    likes = alike(wordnet)
    oracles = some.oracles_on(np.arange(len(some)))
    assert oracles.keys() == {"field", "level", "topic", "word"}
    concepts = some.concept.codes.tolist()
    for row, (concept, nodes) in enumerate(zip(concepts, some.nodes.tolist(), strict=True)):
        senses = [concept, *likes.neighbours(concept).tolist()]
        true: set[int] = set()
        for sense in senses:
            true |= {sense} if name == "wordnet_definitions" else above(wordnet, sense)
        possible = {
            "field": [files[node] == files[concept] for node in nodes],
            "level": [abs(general[node] - general[nodes[0]]) < GRADE / 2 for node in nodes],
            "topic": [bool(chain(main, node) & chain(main, concept)) for node in nodes],
            "word": [node in true for node in nodes],
        }
        for oracle, marks in possible.items():
            expected = marks[0] / sum(marks) if any(marks) else 1 / len(nodes)
            assert oracles[oracle].credit[row] == pytest.approx(expected), (oracle, nodes)


def above(wordnet: WordNet, node: int) -> set[int]:
    found, frontier = {node}, [node]
    while frontier:
        up = {one for below in frontier for one in wordnet.isa.neighbours(below).tolist()}
        frontier = list(up - found)
        found |= up
    return found - {node}


def test_who_knows_the_senses_of_a_word_answers_nearly_all(plan: tuple[str, Plan]) -> None:
    """Of definitions not: there the sentence says which of the senses is meant."""
    name, some = plan
    right = some.oracles_on(np.arange(len(some)))["word"].credit.mean()
    assert right > 0.9 if name == "wordnet_hypernymy" else 0.5 < right < 1
