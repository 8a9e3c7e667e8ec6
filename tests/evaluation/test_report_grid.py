"""The grid of two ordered arguments: when it is shown, and that what it shows is true."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.items.types import ProbeSplit, arguments_type
from evaluation.report.figures import draw, luminance
from evaluation.report.page import make_report, render
from evaluation.results.analyses.argument_order import ordered_arguments
from evaluation.results.analyses.ordered_values import (
    DRAWN,
    LISTED,
    AnswerGrid,
    OrderedView,
    describe,
    ordered_view,
    plot,
)
from evaluation.results.colours import PAIR_SHADES, pair_colours
from evaluation.results.types import (
    read_predictions,
    write_predictions,
    write_results,
)
from tests.evaluation.ordered_probe import (
    AGES,
    Answer,
    all_pairs,
    answered,
    comparisons,
    is_larger,
)
from tests.evaluation.test_report import page_of, probe, well_formed

SIZES = ("smaller", "larger")
THINGS = {"nail": 0, "seed": 0, "cat": 1, "dog": 1, "car": 2, "house": 3, "hill": 4, "sun": 5}


def is_bigger(first: str, second: str) -> bool:
    return THINGS[first] > THINGS[second]


def knows(first: str, second: str) -> float:
    """Lead of the second answer for a model that compares numbers."""
    return float(first) - float(second)


def view_of(split: ProbeSplit, lead=knows, **options) -> OrderedView | None:  # type: ignore[no-untyped-def]
    return ordered_view(answered(split, lead, **options)[1])


def things() -> list[tuple[str, str]]:
    return [(x, y) for x, y in permutations(THINGS, 2) if THINGS[x] != THINGS[y]]


def sizes(answers: tuple[str, str] = SIZES) -> ProbeSplit:
    return comparisons(things(), is_bigger, answers, ("x", "y"))


def cells(grid: AnswerGrid) -> dict[tuple[str, str], tuple[int, int | None]]:
    """Questions and answer of each field, by the labels of its lines."""
    return {
        (grid.lines[row].label, grid.lines[column].label): (cell.scored, cell.answer)
        for row, line in enumerate(grid.cells)
        for column, cell in enumerate(line)
        if cell is not None
    }


# --- which rows have an order -----------------------------------------------------------------


def test_ages_are_ordered_as_numbers() -> None:
    order = ordered_arguments(answered(comparisons(all_pairs([9, 10, 100])), knows)[1])
    assert order is not None
    assert (order.values, order.numeric, order.places) == (("9", "10", "100"), True, False)
    assert (order.names, order.answers) == (("age_1", "age_2"), AGES)
    assert order.gold.tolist() == [0, 0, 1, 0, 1, 1]
    assert order.distance.tolist() == [1, 91, 1, 90, 91, 90]


def test_years_of_birth_turn_the_answers_round() -> None:
    split = comparisons(all_pairs(range(1990, 1996)), lambda one, two: one < two)
    order = ordered_arguments(answered(split, knows)[1])
    assert order is not None
    assert order.answers == ("older", "younger")
    assert order.values[0] == "1990"


def test_numbers_that_are_not_whole_are_told_apart_by_places() -> None:
    order = ordered_arguments(answered(comparisons(all_pairs([0.5, 2, 10])), knows)[1])
    assert order is not None
    assert order.numeric
    assert order.places
    assert sorted(set(order.distance.tolist())) == [1, 2]


def test_words_stand_in_the_order_that_the_right_answers_give() -> None:
    order = ordered_arguments(answered(sizes(), lambda *_: 1.0, SIZES)[1])
    assert order is not None
    assert order.answers == SIZES
    assert dict(zip(order.values, order.level.tolist(), strict=True)) == THINGS
    assert order.places
    pairs = [
        (order.values[one], order.values[two])
        for one, two in zip(order.first, order.second, strict=True)
    ]
    assert pairs == things()


def test_few_comparisons_are_judged_by_what_they_are_with() -> None:
    """A value that is only known to be smaller than the largest is not put among the smallest."""
    chain = [(f"w{at}", f"w{of}") for at, of in permutations(range(8), 2)]
    larger = {f"w{at}": at for at in range(8)} | {"x": 6.5}
    split = comparisons(
        [*chain, ("w7", "x"), ("x", "w7")], lambda x, y: larger[x] > larger[y], SIZES
    )
    order = ordered_arguments(answered(split, lambda *_: 1.0, SIZES)[1])
    assert order is not None
    assert dict(zip(order.values, order.level.tolist(), strict=True))["x"] in range(2, 7)


def test_nonsense_answers_of_a_control_are_ordered_as_well() -> None:
    view = view_of(sizes(("ya", "blah")), lambda *_: 1.0, answers=("ya", "blah"))
    assert view is not None
    assert set(view.answers) == {"ya", "blah"}


@pytest.mark.slow
@given(st.lists(st.integers(0, 5), min_size=5, max_size=12), st.randoms(use_true_random=False))
def test_an_order_of_words_never_contradicts_a_right_answer(levels, random) -> None:  # type: ignore[no-untyped-def]
    place = {f"w{at}": level for at, level in enumerate(levels)}
    pairs = [(x, y) for x, y in permutations(place, 2) if place[x] != place[y]]
    pairs = random.sample(pairs, len(pairs) * 2 // 3)
    split = comparisons(pairs, lambda x, y: place[x] > place[y], SIZES) if pairs else None
    order = split and ordered_arguments(answered(split, lambda *_: 1.0, SIZES)[1])
    if not order:
        return
    first, second = order.level[order.first], order.level[order.second]
    assert ((first > second) == (order.gold == 1)).all()
    assert (first != second).all()
    assert set(order.level.tolist()) == set(range(int(order.level.max()) + 1))
    assert order.level.max() < len(set(levels))


def circle(first: str, second: str) -> bool:
    """Rock, paper, scissors: every value beats the two after it."""
    return (int(first[1]) - int(second[1])) % 5 in (1, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pairs", "right"),
    [
        (all_pairs(range(5)), lambda one, two: abs(int(one) - int(two)) > 2),
        (all_pairs([f"w{at}" for at in range(5)]), circle),
        (all_pairs([f"w{at}" for at in range(5)]), lambda one, two: int(one[1]) + int(two[1]) > 4),
        ([(f"w{at}", f"w{at + 1}") for at in range(20)], lambda one, _: int(one[1:]) % 2 == 0),
        (
            [(f"a{i}", f"b{j}") for i in range(6) for j in range(6)],
            lambda one, two: one[1] > two[1],
        ),
        (all_pairs(["hot", "cold", "warm"]), lambda one, two: one > two),
        ([("15", "16"), ("17", "18")], is_larger),
        ([*all_pairs(range(5)), ("3", "3")], is_larger),
    ],
    ids=["far", "circle", "symmetric", "few pairs", "two sorts", "few words", "one way", "equal"],
)
def test_rows_without_an_order_have_no_grid(pairs: list[tuple[str, str]], right: Answer) -> None:
    split = comparisons(pairs, right)
    assert view_of(split, lambda *_: 1.0) is None
    assert 'id="order"' not in render(*answered(split, lambda *_: 1.0))


def test_other_rows_have_no_grid() -> None:
    split = comparisons(all_pairs(range(5)))
    assert split.arguments is not None
    table = answered(split, knows)[1]
    at = table.schema.get_field_index("arguments")
    held = split.arguments.to_pylist()

    def with_arguments(arguments: list[object]) -> pa.Table:
        return table.set_column(at, "arguments", pa.array(arguments, arguments_type()))

    assert ordered_view(table) is not None
    assert ordered_view(with_arguments([None] * 20)) is None
    assert ordered_view(with_arguments([*held[:-1], None])) is None
    assert ordered_view(with_arguments([*held[:-1], held[0][:1]])) is None
    assert ordered_view(with_arguments([[*pair, pair[0]] for pair in held])) is None
    assert ordered_view(with_arguments([*held[:-1], held[-1][::-1]])) is None, "other names"
    assert ordered_view(table.slice(0, 0)) is None


@pytest.mark.slow
def test_questions_with_more_choices_have_no_grid() -> None:
    """Always, often, sometimes, rarely, never: two arguments, and no order."""
    split = probe(40)
    pairs = all_pairs([f"w{at}" for at in range(8)])[:40]
    filled = [[{"name": n, "value": v} for n, v in zip("xy", pair, strict=True)] for pair in pairs]
    split = replace(split, arguments=pa.array(filled, arguments_type()))
    assert 'id="order"' not in page_of(split)
    assert 'id="order"' not in page_of(probe(40, width=2))


# --- what is shown is true --------------------------------------------------------------------


def test_every_field_counts_its_questions() -> None:
    view = view_of(comparisons(all_pairs(range(15, 38))), set_aside={0: "why", 5: "why"})
    assert view is not None
    fields = [cell for row in view.drawn.cells for cell in row if cell is not None]
    assert len(fields) == 23 * 22
    assert sum(cell.ink == "" for cell in fields) == 2
    picture = draw("grid", "label", 5.0, lambda figure: plot(figure, view))
    drawn = re.findall(r'<path d="([^"]*)" style="fill: var\(--[uv]\d\)', picture)
    assert max(path.count("M") for path in drawn) > 100
    assert "not scored" in picture
    assert [line.label for line in view.table.lines][:2] == ["15 to 16", "17 to 18"]
    assert len(view.table.lines) == 12
    found = cells(view.table)
    assert sum(scored for scored, _ in found.values()) == 23 * 22 - 2
    assert found["17 to 18", "15 to 16"] == (4, 1)
    assert found["15 to 16", "35 to 36"] == (4, 0)


def test_a_model_that_always_says_the_same_is_seen_to() -> None:
    view = view_of(comparisons(all_pairs(range(8))), lambda *_: 3.0)
    assert view is not None
    assert view.drawn == view.table
    assert {answer for _, answer in cells(view.table).values()} == {1}
    text = " ".join(view.sentences)
    assert (
        "“older” is the model’s answer to 100.0% of the questions, and the right one to 50.0%"
        in text
    )
    assert "0.0% where “younger” is right and 100.0% where “older” is right" in text


def test_colours_follow_answer_and_share() -> None:
    view = view_of(comparisons(all_pairs([1, 2, 3])), lambda one, two: 2 * float(one) - 4 + 0.1)
    assert view is not None
    styles = [[cell and cell.ink for cell in row] for row in view.table.cells]
    assert styles == [[None, "u3", "u3"], ["v0", None, "v0"], ["v3", "v3", None]]
    cell = view.table.cells[0][1]
    assert cell is not None
    assert describe(cell, view.answers) == "younger, share 87.0%, right"


def test_accuracy_is_by_distance() -> None:
    view = view_of(
        comparisons(all_pairs(range(20, 50))),
        lambda one, two: knows(one, two) if abs(knows(one, two)) > 5 else -knows(one, two),
    )
    assert view is not None
    assert [(name, share.value) for name, share in view.distances] == [
        ("1", 0.0),
        ("2", 0.0),
        ("3 to 5", 0.0),
        ("6 to 10", 1.0),
        ("11 to 20", 1.0),
        ("21 to 29", 1.0),
    ]
    assert sum(share.n for _, share in view.distances) == 30 * 29


def test_words_of_one_place_are_joined_where_there_are_many() -> None:
    place = {f"thing {at:03}": at % 6 for at in range(120)}
    pairs = [(x, y) for x, y in permutations(place, 2) if place[x] != place[y]][::7]
    split = comparisons(pairs, lambda x, y: place[x] > place[y], SIZES)
    view = view_of(split, lambda x, y: float(place[x] - place[y]), answers=SIZES)
    assert view is not None
    assert len(view.drawn.lines) == len(view.table.lines) == 6
    assert all(line.label.endswith(" and 17 more") for line in view.table.lines)
    assert all(
        answer == int(row > column)
        for row, line in enumerate(view.table.cells)
        for column, answer in enumerate(cell and cell.answer for cell in line)
        if answer is not None
    )
    assert [name for name, _ in view.distances] == ["1", "2", "3", "4", "5"]


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, LISTED, LISTED + 1, DRAWN, DRAWN + 1, 90, 230])
def test_there_are_never_too_many_lines(count: int) -> None:
    pairs = [*combinations(map(str, range(count)), 2)]
    split = comparisons([*pairs, *[pair[::-1] for pair in pairs]])
    results, predictions = answered(split, knows)
    view = ordered_view(predictions)
    assert view is not None
    assert len(view.table.lines) <= LISTED
    assert len(view.drawn.lines) <= DRAWN
    assert (view.drawn == view.table) == (count <= LISTED)
    page = render(results, predictions)
    assert len(page) < 400_000
    assert 'id="order"' in page
    assert "order" in well_formed(page).ids


def test_nothing_scored_is_said() -> None:
    split = comparisons(all_pairs(range(4)))
    predictions = answered(split, knows)[1]
    nulls = {"correct": pa.bool_(), "prediction": pa.int32(), "probability": pa.float32()}
    for name, kind in nulls.items():
        at = predictions.schema.get_field_index(name)
        predictions = predictions.set_column(at, name, pa.nulls(12, kind))
    view = ordered_view(predictions)
    assert view is not None
    assert view.sentences[-1] == "None was scored."
    assert view.distances == ()


def test_the_order_of_rows_does_not_matter() -> None:
    predictions = answered(sizes(), lambda x, y: float(THINGS[x] - THINGS[y]) + 0.5, SIZES)[1]
    mixed = predictions.take(np.random.default_rng(0).permutation(predictions.num_rows))
    assert ordered_view(mixed) == ordered_view(predictions)


@pytest.mark.slow
def test_texts_are_escaped() -> None:
    hostile = ['</svg><script>alert("&")</script>', "{{ 7 * 7 }}", "nul\x00", "שלום", "x" * 999]
    place = {f"{text}{at}": at for at, text in enumerate(hostile * 3)}
    names = ("<b>one", "two\x07")
    split = comparisons(
        all_pairs([*place]), lambda x, y: place[x] > place[y], ("<i>", "</td>"), names
    )
    page = render(*answered(split, lambda *_: 0.5, ("<i>", "</td>")))
    parsed = well_formed(page)
    assert "<script" not in page
    assert "\x00" not in page
    assert "\x07" not in page
    assert "two␇" in parsed.text
    assert len(page) < 200_000


def test_both_answers_are_told_apart_in_all_their_shades() -> None:
    shades = pair_colours()
    assert len({colour for pair in shades.values() for colour in pair}) == 2 * 2 * PAIR_SHADES
    for name in "uv":
        for at, rising in ((0, False), (1, True)):
            levels = [luminance(shades[f"{name}{step}"][at]) for step in range(PAIR_SHADES)]
            assert levels == sorted(levels, reverse=not rising)


# --- the files --------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_is_made_from_the_two_files_alone(tmp_path: Path) -> None:
    results, predictions = answered(comparisons(all_pairs(range(15, 38))), knows)
    write_results(results, tmp_path)
    write_predictions(predictions, tmp_path)
    assert read_predictions(tmp_path).equals(predictions)
    assert make_report(tmp_path).read_text(encoding="utf-8") == render(results, predictions)
