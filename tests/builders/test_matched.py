"""Matched choice groups: the gold's place in the order of similarity is uniform."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

import datasets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.engine.draw import matched
from builders.engine.draw.families import GroupRules, Truth
from builders.engine.draw.likeness import (
    UNIT,
    ComparedTexts,
    Encoder,
    Likeness,
    View,
    dot_products,
    gold_places,
    likeness_of,
    similarities,
    text_hashes,
)
from builders.engine.draw.matched import GroupMatcher
from builders.wordnet.likeness import KINDS_OF_TEXTS, table_of
from builders.wordnet.options import HypernymyOptions
from kbprobe.arrays import Bools, Ints
from kbprobe.errors import UsageError
from kbprobe.format.manifest import read_manifest
from kbprobe.rng import RandomGenerator

Run = Callable[..., "subprocess.CompletedProcess[str]"]

QUESTIONS, DIMENSIONS, SIZE = 600, 24, 5


def matching(questions: int = QUESTIONS, encoders: int = 2) -> GroupMatcher:
    """Questions whose own gold is mostly the most similar one, by encoders that partly agree."""
    rng = np.random.default_rng(0)
    topic = rng.normal(size=(questions, DIMENSIONS))
    views = []
    for number in range(encoders):
        left, right = (topic + rng.normal(size=topic.shape) * 1.7 for _ in range(2))
        asked, shown = (
            np.clip(np.rint(side * 6), -127, 127).astype(np.int8) for side in (left, right)
        )
        spread = int(np.std(dot_products(asked, shown)))
        views.append(View(Encoder(f"encoder {number}", "0" * 64, 1, spread), asked, shown))
    line = np.arange(questions)
    likeness = Likeness(tuple(views), line, line)

    def false(lines: Ints) -> tuple[Ints, Bools]:
        return np.arange(lines.size), ~np.eye(lines.size, dtype=np.bool_)

    none = np.zeros(questions, dtype=np.int64)
    return GroupMatcher(likeness, false, none, none)


def clash(one: Ints, other: Ints) -> Bools:
    """Rule out some pairs that only the full test knows of."""
    return np.asarray((one != other) & ((one * 31 + other * 17) % 23 != 0))


def first_shares(groups: Ints, view: View) -> list[float]:
    """Return the share of each place of the gold, by a plain loop."""
    places = []
    for group in groups.tolist():
        for own in group:
            similar = [
                int(view.questions[own].astype(int) @ view.choices[other].astype(int))
                for other in group
            ]
            gold = similar[group.index(own)]
            places.append(sum(value > gold for value in similar))
    return [places.count(place) / len(places) for place in range(SIZE)]


def test_the_golds_place_is_uniform_by_each_encoder() -> None:
    draw = matching()
    rules = GroupRules(SIZE, 3, clash)
    lines = np.arange(QUESTIONS)
    random = np.random.default_rng(1).permutation(lines).reshape(-1, SIZE)
    groups = draw.draw([lines], rules, RandomGenerator.of(0))
    assert groups.size > QUESTIONS / 3
    for view in draw.likeness.views:
        assert first_shares(random, view)[0] > 0.5
        shares = first_shares(groups, view)
        assert abs(shares[0] - 1 / SIZE) < 0.05, shares
        assert max(shares) < 0.3, shares


def test_groups_keep_the_rules() -> None:
    groups = matching().draw(
        [np.arange(QUESTIONS)], GroupRules(SIZE, 2, clash), RandomGenerator.of(0)
    )
    assert np.bincount(groups.ravel()).max() <= 2
    assert all(len(set(group)) == SIZE for group in groups.tolist())
    assert len({tuple(sorted(group)) for group in groups.tolist()}) == len(groups)
    one, other = np.nonzero(~np.eye(SIZE, dtype=np.bool_))
    assert clash(groups[:, one].ravel(), groups[:, other].ravel()).all()


@pytest.mark.parametrize("uses", [1, 2])
def test_few_uses_leave_some_groups(uses: int) -> None:
    groups = matching().draw(
        [np.arange(QUESTIONS)], GroupRules(SIZE, uses, clash), RandomGenerator.of(0)
    )
    assert groups.size > QUESTIONS * 0.3
    assert np.bincount(groups.ravel()).max() <= uses


def test_pools_are_drawn_from_separately_and_the_seed_decides() -> None:
    draw, rules = matching(), GroupRules(SIZE, 2, clash)
    pools = [np.arange(0, 300), np.arange(300, 600), np.arange(3)]
    groups = draw.draw(pools, rules, RandomGenerator.of(0))
    assert ((groups < 300).all(axis=1) | (groups >= 300).all(axis=1)).all()
    assert np.array_equal(groups, draw.draw(pools, rules, RandomGenerator.of(0)))
    assert not np.array_equal(groups, draw.draw(pools, rules, RandomGenerator.of(1)))


def test_groups_made_otherwise_are_selected_in_the_same_way() -> None:
    draw = matching()
    rng = np.random.default_rng(2)
    groups = np.concatenate([rng.permutation(QUESTIONS).reshape(-1, SIZE) for _ in range(40)])
    chosen = draw.select(groups, GroupRules(SIZE, 40, clash))
    for view in draw.likeness.views:
        assert first_shares(chosen, view)[0] < 0.85 * first_shares(groups, view)[0]


def test_questions_without_a_vector_are_not_matched() -> None:
    draw = matching()
    question = draw.likeness.question.copy()
    question[::2] = -1
    likeness = draw.likeness._replace(question=question)
    known = GroupMatcher(likeness, draw.false, draw.cell, draw.equal)
    groups = known.draw([np.arange(QUESTIONS)], GroupRules(SIZE, 2, clash), RandomGenerator.of(0))
    assert (groups % 2 == 1).all()
    nothing = GroupMatcher(
        likeness._replace(question=question * 0 - 1), draw.false, draw.cell, draw.equal
    )
    assert len(nothing.draw([np.arange(9)], GroupRules(SIZE, 2, clash), RandomGenerator.of(0))) == 0


def test_choices_that_are_too_much_alike_are_not_shown_together() -> None:
    draw, rules = matching(), GroupRules(SIZE, 3, clash)
    alike = similarities([*map(of_choices, draw.likeness.views)])
    limit = 1
    most = UNIT * limit * len(draw.likeness.views)

    def most_alike(groups: Ints) -> int:
        pairs = alike[groups[:, :, None], groups[:, None, :]]
        return int(pairs[:, ~np.eye(SIZE, dtype=np.bool_)].max())

    likeness = draw.likeness._replace(most_alike=limit)
    limited = GroupMatcher(likeness, draw.false, draw.cell)
    groups = limited.draw([np.arange(QUESTIONS)], rules, RandomGenerator.of(0))
    free = draw.draw([np.arange(QUESTIONS)], rules, RandomGenerator.of(0))
    assert groups.size > QUESTIONS / 4
    assert most_alike(groups) <= most * 1.02
    assert most_alike(free) > most * 1.5


def of_choices(view: View) -> View:
    """Compare choices with choices."""
    return view._replace(questions=view.choices)


def test_places_of_golds_are_those_of_a_loop() -> None:
    likeness = matching(encoders=2).likeness
    rng = np.random.default_rng(3)
    choices = rng.permuted(np.tile(np.arange(QUESTIONS), (40, 1)), axis=1)[:, :SIZE]
    asked = likeness._replace(question=choices[:, 0], choice=choices[:, 0])
    alike = similarities(likeness.views)
    expected = [
        sum(alike[row[0], other] > alike[row[0], row[0]] for other in row[1:])
        for row in choices.tolist()
    ]
    assert gold_places(asked, choices).tolist() == expected
    one = likeness._replace(views=likeness.views[:1])
    dots = dot_products(one.views[0].questions, one.views[0].choices)
    assert (np.diff(similarities(one.views)[0][np.argsort(dots[0])]) >= 0).all()


def test_expected_places_are_those_of_a_loop() -> None:
    margin = np.random.default_rng(1).integers(-60, 60, (3, 4, 3, 2)).astype(np.int8)
    weights = (1, 3)
    found = matched._expected_places(margin, weights) / matched.ONE
    assert found.shape == (3, 4, 2, 4)
    assert np.abs(found.sum(axis=3) - 1).max() < 0.01
    for group, question, encoder in np.ndindex(3, 4, 2):
        expected = np.zeros(4)
        for deviation in matched.DEVIATIONS:
            above = matched._chances(weights[encoder], deviation) / matched.CHANCE
            chances = above[margin[group, question, :, encoder]]
            for more_similar in product((False, True), repeat=3):
                share = np.where(more_similar, chances, 1 - chances).prod()
                expected[sum(more_similar)] += share / len(matched.DEVIATIONS)
        assert np.abs(found[group, question, encoder] - expected).max() < 0.002
    more = matched._chances(1, 0.0)
    assert more[0] == matched.CHANCE // 2
    assert (np.diff(np.concatenate([more[128:], more[:128]])) >= 0).all()


def test_choices_that_are_not_wrong_are_excluded_with_every_question_of_their_gold() -> None:
    gold = np.array([0, 1, 1, 2])
    zero = np.zeros((4, 4), dtype=np.int32)
    pairs = matched.Pairs(gold, zero, zero[0], np.zeros((1, 4, 3), dtype=np.int8))
    pairs.exclude(np.array([3]), np.array([1]))
    excluded = {(int(one), int(other)) for one, other in zip(*np.nonzero(zero), strict=True)}
    assert excluded == {(3, 1), (3, 2), (1, 3), (2, 3)}


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 143), max_size=30), st.lists(st.integers(0, 143), max_size=30))
def test_false_among_agrees_with_is_false(true: list[int], alike: list[int]) -> None:
    size = 12
    keys = [np.unique(np.array(some, dtype=np.int64)) for some in (true, alike)]
    truth = Truth(size, *keys)
    concept, gold = (side.ravel() for side in np.meshgrid(np.arange(size), np.arange(size)))
    nodes = np.array([1, 4, 5, 11])
    among = truth.false_among(concept, gold, nodes)
    for column, node in enumerate(nodes):
        expected = truth.is_false(concept, gold, np.full(concept.size, node))
        assert np.array_equal(among[:, column], expected)


def test_dot_products_are_exact() -> None:
    rng = np.random.default_rng(0)
    for dimensions in (3, 3000):
        left, right = rng.integers(-127, 128, (2, 40, dimensions)).astype(np.int8)
        exact = left.astype(np.int64) @ right.astype(np.int64).T
        assert np.array_equal(dot_products(left, right), exact.astype(np.float32))


def test_the_tables_that_come_with_the_package_are_by_the_same_encoders() -> None:
    tables = {name: table_of(name) for name in set(sum(KINDS_OF_TEXTS.values(), ()))}
    encoders = {table.encoders for table in tables.values()}
    assert len(encoders) == 1
    assert [encoder.name for encoder in encoders.pop()] == [
        "all-MiniLM-L6-v2",
        "all-mpnet-base-v2",
        "glove-6b-50d",
    ]
    for table in tables.values():
        assert (np.diff(table.hashes.astype(object)) > 0).all()
        rows = table.rows_of(["no text of any question"])
        assert rows.tolist() == [-1]
        for place in range(len(table.encoders)):
            assert np.abs(table.vectors(place, np.arange(50))).max() > 0


def test_texts_in_no_table_have_the_vectors_of_the_static_encoder() -> None:
    texts, line = ["a large dog", "the stock market", "an old hound"], np.arange(3)
    likeness = likeness_of(ComparedTexts(texts, texts, line, line))
    (view,) = likeness.views
    similar = dot_products(view.questions, view.choices)
    assert similar.argmax(axis=1).tolist() == [0, 1, 2]
    assert similar[0, 2] > similar[0, 1]
    assert list(likeness.digests) == ["static"]
    assert text_hashes(texts).size == 3


@pytest.mark.parametrize(
    ("given", "matched"),
    [
        ({}, True),
        ({"match": "none"}, False),
        ({"language": "it"}, False),
        ({"language": "it", "match": "a/model"}, True),
        ({"match": "a/model,b/model"}, True),
        ({"sampling": "uniform", "families": "paper", "tier": "full"}, False),
    ],
)
def test_what_is_matched_by_default(given: dict[str, object], matched: bool) -> None:
    options = HypernymyOptions.parse(given, "wordnet_hypernymy")
    assert options.matched == matched
    assert ("near" in options.family_list) == matched


@pytest.mark.parametrize("match", ["", "a/model,", "none,a/model", "similarity,none", " , "])
def test_models_are_named_alone(match: str) -> None:
    with pytest.raises(UsageError, match="--match: similarity, none, or models alone"):
        HypernymyOptions.parse({"match": match}, "wordnet_hypernymy")


@pytest.mark.parametrize(
    "unmatched", [{"match": "none"}, {"language": "it"}, {"sampling": "uniform", "tier": "full"}]
)
def test_hops_are_balanced_in_matched_groups_alone(unmatched: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="--hops balanced selects among matched groups"):
        HypernymyOptions.parse({"hops": "balanced", **unmatched}, "wordnet_hypernymy")


@pytest.mark.slow
def test_a_build_is_matched_and_says_on_what(tmp_path: Path, build_probe: Run) -> None:
    for name, more in (("matched", ()), ("random", ("--match", "none"))):
        done = build_probe("wordnet_hypernymy", "--pos", "verb", "--output", name, *more)
        assert done.returncode == 0, done.stderr
    shares = {}
    for name in ("matched", "random"):
        audit = read_manifest(tmp_path / name).audit
        assert audit is not None
        shares[name] = audit.baselines["most similar choice"]["all"].value
    assert shares["matched"] < shares["random"] - 0.1
    assert read_manifest(tmp_path / "random").matching is None
    on = read_manifest(tmp_path / "matched").matching
    assert on is not None
    assert [encoder.name for encoder in on.encoders][:2] == [
        "all-MiniLM-L6-v2",
        "all-mpnet-base-v2",
    ]
    rows = datasets.load_dataset(str(tmp_path / "matched"), split="test")
    kinds = {kind for row in rows["choice_families"] for kind in row}
    assert {"gold", "near", "random", "cousin"} <= kinds
    assert set(rows["distractor_family"]) == {"near", "random"}
