"""Comparisons of ages, two or several: truth, balance, variants, and what one age alone tells."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders.comparisons.probes import drawn_sets
from builders.engine.pipeline import Built, build, write
from builders.engine.plan import Plan
from builders.engine.probe import find_probe
from builders.engine.request import Request
from builders.english.inflection import number_article, number_word
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.rng import RandomGenerator

AGE, HOPS = "age_comparison", "multihop_comparison"
Rows = list[dict[str, Any]]
Given = tuple[tuple[str, Any], ...]


EVERY_PAIR = (("evaluation_rows", 0),)


@cache
def made(name: str, given: Given) -> Built:
    """Build a probe in memory; each is built once."""
    probe = find_probe(name)
    audit = given in ((), EVERY_PAIR)
    return build(Request(probe, probe.options.parse(dict(given), name), audit=audit))


def rows_of(name: str, config: str = "default", **options: Any) -> Rows:
    """All rows of a config, each with its split, its arguments by name, and its right answer."""
    return _rows(name, config, tuple(options.items()))


@cache
def _rows(name: str, config: str, given: Given) -> Rows:
    rows: Rows = []
    for split, items in made(name, given).configs[config].items():
        for row in items.table().to_pylist():
            values = {one["name"]: one["value"] for one in row["arguments"]}
            rows.append({**row, **values, "split": split, "gold": gold_of(row)})
    return rows


def gold_of(row: dict[str, Any]) -> str:
    return str(row["choices"]["text"][row["answer"]])


def pair(row: dict[str, Any]) -> tuple[int, int]:
    return int(row["age_1"]), int(row["age_2"])


# Two ages


@pytest.mark.slow
def test_the_published_size_is_reached() -> None:
    splits = Counter(row["split"] for row in rows_of(AGE))
    assert splits == {"train": 4032, "validation": 138, "test": 414}
    assert splits.total() >= 4532


@pytest.mark.slow
def test_the_younger_is_younger() -> None:
    for row in rows_of(AGE):
        one, other = pair(row)
        assert row["gold"] == ("younger" if one < other else "older")
        (fact,) = row["triples"]
        assert fact["subject"] == row["concept"] == f"{one} years"
        assert fact["object"] == f"{other} years"
        assert fact["relation"] == ("less than" if one < other else "greater than")


@pytest.mark.slow
def test_all_pairs_stand_in_both_orders_in_one_split() -> None:
    home: dict[tuple[int, int], str] = {}
    for row in rows_of(AGE):
        assert pair(row) not in home
        home[pair(row)] = row["split"]
    assert all(home[other, one] == split for (one, other), split in home.items())
    asked = {pair for pair, split in home.items() if split != "train"}
    assert asked == set(permutations(range(15, 39), 2))


def test_train_and_evaluation_share_no_age() -> None:
    ages: dict[bool, set[int]] = defaultdict(set)
    for row in rows_of(AGE):
        ages[row["split"] == "train"] |= set(pair(row))
    assert ages[True] == set(range(43, 121))
    assert ages[False] == set(range(15, 39))


@pytest.mark.slow
def test_all_ordered_pairs_by_option() -> None:
    train = {pair(row) for row in rows_of(AGE, train_rows=0) if row["split"] == "train"}
    assert train == set(permutations(range(43, 121), 2))


@pytest.mark.slow
def test_published_ranges_and_fewer_rows() -> None:
    published = rows_of(AGE, train_ages=(41, 104), evaluation_ages=(15, 37), evaluation_rows=500)
    splits = Counter(row["split"] == "train" for row in published)
    assert splits == {True: 4032, False: 500}


def test_both_answers_are_equally_frequent_in_every_split_and_wording() -> None:
    golds: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for row in rows_of(AGE):
        golds[row["split"], row["distractor_family"], row["template"]][row["gold"]] += 1
    assert len({template for *_, template in golds}) == 4
    for cell, counts in golds.items():
        assert abs(counts["younger"] - counts["older"]) <= 1, cell


def test_sentences_are_plain_english() -> None:
    shown = {pair(row): row["question"] for row in rows_of(AGE) if row["template"] == "plain-i-am"}
    for (one, other), stem in shown.items():
        person = f"{number_article(one).capitalize()} {one}-year-old"
        assert stem == f"I am {other} years old. {person} is [MASK] than me."
    assert {row["template"] for row in rows_of(AGE)} == {
        *("plain-i-am", "plain-someone", "plain-compared", "plain-sister")
    }


@pytest.mark.slow
def test_sentences_are_the_papers_by_option() -> None:
    rows = rows_of(AGE, wording="tacl")
    assert {row["template"] for row in rows} == {"tacl", "tacl-if-first"}
    for row in rows:
        one, other = pair(row)
        if row["template"] == "tacl":
            begins = (
                f"{number_article(one).capitalize()} {one} year old person is [MASK] than me in age"
            )
            end = f"{number_article(other)} {other} year old person."
            assert row["question"] == f"{begins}, If I am {end}"
    arxiv = rows_of(AGE, wording="arxiv")
    assert {row["template"] for row in arxiv} == {"arxiv"}
    first = arxiv[0]
    assert first["question"].endswith(f"{first['age_2']} year old person.")
    assert f"{first['age_1']} year old person age is [MASK] than a" in first["question"]
    assert {row["id"] for row in rows} == {row["id"] for row in arxiv}
    (hop, *_) = rows_of(HOPS, wording="tacl", train_rows=30, evaluation_rows=30)
    assert hop["question"].startswith("When comparing a")


def test_one_of_two_ages_tells_about_three_quarters() -> None:
    """Whoever knows the range and sees one age is right in (3n - 2) / (4(n - 1)) of all pairs."""
    rows = [row for row in rows_of(AGE) if row["split"] != "train"]
    ages = len({row["age_1"] for row in rows})
    for name in ("age_1", "age_2"):
        golds: dict[str, Counter[str]] = defaultdict(Counter)
        for row in rows:
            golds[row[name]][row["gold"]] += 1
        right = sum(max(counts.values()) for counts in golds.values())
        assert right / len(rows) == pytest.approx((3 * ages - 2) / (4 * (ages - 1)))
    assert (3 * ages - 2) / (4 * (ages - 1)) == pytest.approx(0.761, abs=0.001)


def test_what_is_learned_of_one_age_does_not_carry_over_to_other_ages() -> None:
    report = made(AGE, ()).manifest["audit"]
    cells = {name: families["all"] for name, families in report["baselines"].items()}
    assert cells["template only"]["low"] <= 0.5 <= cells["template only"]["high"]
    for name in ("age_1 alone", "age_2 alone", "majority answer"):
        assert cells[name]["accuracy"] == pytest.approx(0.5, abs=0.05), name
    assert cells["majority position"]["low"] <= 0.5 <= cells["majority position"]["high"]


# Variants of two ages


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "flipped"),
    [("birth_year", False), ("ages_in_year_frame", True), ("years_in_age_frame", True),
     ("out_of_range", False), ("number_words", False), ("multiple_choice", False)],
)  # fmt: skip
def test_variants_ask_the_same_rows_and_say_whose_answer_is_another(
    variant: str, flipped: bool
) -> None:
    default = {row["id"]: row for row in rows_of(AGE)}
    rows = rows_of(AGE, variant)
    assert len(rows) == (240 if variant == "out_of_range" else len(default))
    for row in rows:
        plain = default[row["id"]]
        assert row["split"] == plain["split"]
        assert (row["gold"] != plain["gold"]) == flipped
    counts = made(AGE, ()).manifest["variants"][variant]
    assert counts == {"rows": len(rows), "other_answers": len(rows) * flipped}


@pytest.mark.slow
def test_what_variants_show() -> None:
    default = {row["id"]: row for row in rows_of(AGE)}
    numbers: dict[str, Callable[[int], str]] = {
        "birth_year": lambda age: str(2020 - age),
        "ages_in_year_frame": str,
        "years_in_age_frame": lambda age: str(2020 - age),
        "out_of_range": lambda age: str(age + 200),
        "number_words": number_word,
        "multiple_choice": str,
    }
    for variant, shown in numbers.items():
        for row in rows_of(AGE, variant):
            one, other = pair(default[row["id"]])
            assert (row["age_1"], row["age_2"]) == (shown(one), shown(other))
            in_years = variant in ("birth_year", "ages_in_year_frame")
            assert ("born in" in row["question"]) == in_years
            asked = variant == "multiple_choice"
            assert ("[MASK]" in row["question"]) != asked
            assert row["setup"] == ("mc_qa" if asked else "mc_mlm")
            assert row["question"].endswith("?" if asked else ".")


@pytest.mark.slow
def test_variants_follow_the_rows_that_a_limit_leaves_and_can_be_left_out() -> None:
    ids = {row["id"] for row in rows_of(AGE, limit=100)}
    assert {row["id"] for row in rows_of(AGE, "birth_year", limit=100)} == ids
    assert made(AGE, (("limit", 2),)).manifest["variants"].keys() >= {"birth_year"}
    without = made(AGE, (("variants", False),))
    assert without.configs.keys() == {"default", "no_language", "perturbed"}
    probe = find_probe(AGE)
    request = Request(probe, probe.options.parse({"variants": False}, AGE))
    with pytest.raises(UsageError, match=r"no config 'birth_year'. Build it with variants=True"):
        request.check_config("birth_year")


@pytest.mark.slow
def test_a_question_with_several_rows_has_no_variants() -> None:
    probe = find_probe(AGE)

    def twice(integers: Any, options: Any, rng: RandomGenerator) -> Plan:
        plan = probe.plan(integers, options, rng)
        again = plan.take(np.tile(np.arange(len(plan)), 2))
        return replace(again, nodes=np.concatenate([plan.nodes, plan.nodes[:, ::-1]]))

    twice.__module__ = probe.plan.__module__  # so that its template is found
    with pytest.raises(KbprobeError, match="one row for each of its questions"):
        build(Request(replace(probe, plan=twice), probe.options.parse({"limit": 40}, AGE)))


@pytest.mark.slow
def test_the_card_shows_variants(tmp_path: Path) -> None:
    write(made(AGE, (("limit", 400),)), tmp_path / AGE)
    card = (tmp_path / AGE / "README.md").read_text(encoding="utf-8")
    assert "## Variants" in card
    assert "| `years_in_age_frame` |" in card
    assert "CC0-1.0" in card


def test_a_users_wordings_are_used_beside_the_family_chosen(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    text = "{{ age_1 }} is [MASK] than {{ age_2 }}"
    file.write_text(
        f"extends: true\nquestion:\n  - {{id: mine, text: '{text}', key_words: [than]}}\n",
        encoding="utf-8",
    )
    probe = find_probe(AGE)
    template = probe.template(probe.options.parse({"wording": "arxiv"}, AGE), file)
    assert [wording.id for wording in template.questions] == ["arxiv", "mine"]
    template = probe.template(probe.options.parse({"wording": "mine"}, AGE), file)
    assert [wording.id for wording in template.questions] == ["mine"]
    file.write_text(f"question: [{{id: tacl-x, text: '{text}', key_words: [than]}}]\n")
    with pytest.raises(UsageError, match="another family than --wording arxiv"):
        probe.template(probe.options.parse({"wording": "arxiv"}, AGE), file)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (AGE, {"train_ages": (30, 60)}, "--train-ages and --evaluation-ages overlap"),
        (AGE, {"train_ages": (60, 50)}, "--train-ages: two ages from 1 to 999"),
        (AGE, {"split_shares": (1, 0, 0)}, "validation or test needs a share"),
        (HOPS, {"choices": 6}, "--choices"),
    ],
)
def test_impossible_options_are_refused(name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_probe(name).options.parse(given, name)


# Several ages


@pytest.mark.slow
def test_the_published_size_of_several_ages_is_reached() -> None:
    splits = Counter(row["split"] for row in rows_of(HOPS))
    assert splits["train"] == 4998
    assert splits["validation"] + splits["test"] == 999
    assert splits.total() >= 5500


@pytest.mark.parametrize("people", [3, 4, 5])
def test_golds_are_right_and_no_age_and_no_row_is_repeated(people: int) -> None:
    ordinals = ("first", "second", "third", "fourth", "fifth")[:people]
    seen = set()
    for row in rows_of(HOPS, choices=people, train_rows=600, evaluation_rows=300):
        assert [one["name"] for one in row["arguments"]] == [f"age_{i + 1}" for i in range(people)]
        ages = [int(one["value"]) for one in row["arguments"]]
        assert len(set(ages)) == people
        superlative = row["distractor_family"]
        best = max(ages) if superlative == "oldest" else min(ages)
        assert row["gold"] == ordinals[ages.index(best)]
        assert superlative == row["relation"]
        assert superlative in row["question"]
        others = [int(fact["object"].split()[0]) for fact in row["triples"]]
        assert sorted([best, *others]) == sorted(ages)
        assert row["concept"] == f"{best} years"
        words = re.split(r"\W+", row["question"])
        positions = [words.index(str(age)) for age in ages]
        assert positions == sorted(positions)
        assert (superlative, *ages) not in seen
        seen.add((superlative, *ages))
    assert len(seen) > 800


@pytest.mark.slow
def test_each_position_is_right_equally_often_in_every_split() -> None:
    golds: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    sets: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows_of(HOPS):
        golds[row["split"], row["relation"]][row["gold"]] += 1
        sets[row["split"]][row["relation"]] += 1
    assert len(golds) == 6
    for counts in golds.values():
        assert len(counts) == 3
        assert len(set(counts.values())) == 1
    for counts in sets.values():
        assert abs(counts["oldest"] - counts["youngest"]) <= 3


def test_a_set_of_ages_is_a_cluster_and_asked_about_once_for_each_position() -> None:
    clusters: dict[str, Rows] = defaultdict(list)
    for row in rows_of(HOPS):
        clusters[row["cluster"]].append(row)
    for name, rows in clusters.items():
        ages = {frozenset(one["value"] for one in row["arguments"]) for row in rows}
        assert len(ages) == len({row["split"] for row in rows}) == 1
        assert all(age in name for age in next(iter(ages)))
        assert sorted(row["gold"] for row in rows) == ["first", "second", "third"]


def test_one_age_of_three_tells_something_and_the_rest_nothing() -> None:
    report = made(HOPS, ()).manifest["audit"]
    cells = {name: families["all"] for name, families in report["baselines"].items()}
    for name in ("template only", "age_1 alone", "age_2 alone", "age_3 alone", "majority answer"):
        assert cells[name]["accuracy"] == pytest.approx(1 / 3, abs=0.05), name
    for share in report["positions"]:
        assert share == pytest.approx(1 / 3, abs=0.03)
    # Whoever knows the range and sees one age of three.
    rows = [row for row in rows_of(HOPS) if row["split"] != "train"]
    golds: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in rows:
        golds[row["relation"], row["age_1"]][row["gold"]] += 1
    right = sum(max(counts.values()) for counts in golds.values()) / len(rows)
    assert 0.5 < right < 0.75


# Numbers


@pytest.mark.parametrize(
    ("number", "word", "before"),
    [(1, "one", "a"), (8, "eight", "an"), (11, "eleven", "an"), (18, "eighteen", "an"),
     (20, "twenty", "a"), (21, "twenty-one", "a"), (80, "eighty", "an"), (88, "eighty-eight", "an"),
     (100, "one hundred", "a"), (118, "one hundred and eighteen", "a"),
     (230, "two hundred and thirty", "a"), (800, "eight hundred", "an"),
     (999, "nine hundred and ninety-nine", "a")],
)  # fmt: skip
def test_numbers_read_aloud(number: int, word: str, before: str) -> None:
    assert number_word(number) == word
    assert number_article(number) == before


def test_years_have_an_article_too() -> None:
    assert number_article(1985) == "a"


def test_sets_are_drawn_without_repeats() -> None:
    rng = RandomGenerator.of(1, "sets")
    every = drawn_sets(5, 12, 3, 0, rng)
    assert len(every) == 56
    for sets in (every, drawn_sets(1, 900, 4, 5000, rng)):
        assert len(np.unique(sets, axis=0)) == len(sets)
        assert (np.diff(sets, axis=1) > 0).all()
    assert every.min() == 5
    assert every.max() == 12
    assert len(drawn_sets(1, 900, 4, 5000, rng)) == 5000
    some = drawn_sets(5, 12, 3, 10, rng)
    assert (some == every[:10]).all()
    with pytest.raises(UsageError, match="choose fewer rows"):
        drawn_sets(1, 900, 4, 0, rng)


@pytest.mark.slow
def test_one_age_less_tells_as_much_as_probability_has_it() -> None:
    """Of two ages of n, one tells (3n - 2) / (4(n - 1)); of three, two tell three quarters."""
    oracles = made(AGE, EVERY_PAIR).manifest["audit"]["oracles"]
    assert oracles["one age"]["families"]["all"] == pytest.approx((3 * 24 - 2) / (4 * 23), abs=0.02)
    several = made(HOPS, ()).manifest["audit"]["oracles"]
    assert several["first age"]["families"]["all"] == pytest.approx(0.535, abs=0.04)
    assert several["first ages"]["families"]["all"] == pytest.approx(0.75, abs=0.03)
    assert all(oracle["target"] == 0.77 for oracle in (*oracles.values(), *several.values()))
